import type { Readable } from 'node:stream';
import { Agent, EnvHttpProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import { codeOf, messageOf } from '../local/assets/errors';
import { dockerConfigFile, dockerCredentials } from './credentials';
import { ImageError, MAX_DOCUMENT_BYTES, readAll } from './oci';
import { isLoopback, registryUrl } from './reference';
import { RegistryAuth } from './registry-auth';

/** Options of {@link RegistryTransport}. */
export interface TransportOptions {
  /** Speak HTTP, without TLS. @default only to registries on this machine */
  readonly plainHttp?: boolean;
  /** Finds the credentials and the proxy. @default that of this process */
  readonly env?: NodeJS.ProcessEnv;
  /** Between one try and the next one, in milliseconds, where the registry names no time. @default 1000, doubled each time */
  readonly retryDelayMs?: number;
}

/** A request to a registry. */
export interface RegistryRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT';
  /** A path of the registry, or the URL of an upload. */
  readonly target: string | URL;
  /** What the request needs: `repository:team/app:pull,push`. */
  readonly scopes: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: () => Readable | string;
}

/** The response of a registry, or of where it redirects to. */
export interface RegistryResponse {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  readonly body: AsyncIterable<Uint8Array>;
  /** Where it is from, after redirects. */
  readonly url: URL;
}

/** What a registry, or the way to it, may do better the next time. */
class TemporaryError extends ImageError {
  constructor(
    message: string,
    readonly retryAfterMs: number | undefined,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const TRIES = 3;
/** A registry that names a longer time is not waited for. */
const LONGEST_WAIT_MS = 30_000;
const redirects: readonly number[] = [301, 302, 303, 307, 308];
const MAX_REDIRECTS = 5;
const temporaryStatuses: readonly number[] = [429, 500, 502, 503, 504];

/**
 * Sends requests to one registry, with authorization where it asks for that. Only the registry itself gets it: no host that it redirects
 * to, and nothing without TLS if the registry has TLS.
 */
export class RegistryTransport {
  readonly url: URL;
  private readonly auth: RegistryAuth;
  private readonly agent: Dispatcher;

  /** @param host the registry as references name it: `docker.io` */
  constructor(
    readonly host: string,
    private readonly options: TransportOptions = {},
  ) {
    const { env } = options;
    this.url = registryUrl(host, options.plainHttp ?? false);
    this.agent = isLoopback(host) ? new Agent() : proxyAgent(env);
    this.auth = new RegistryAuth(this.url, {
      host,
      send: (url, request) => this.exchange(url, request),
      configFile: dockerConfigFile(env),
      credentials: () => dockerCredentials(host, env),
    });
  }

  async close(): Promise<void> {
    await this.agent.close();
  }

  /** Runs what may fail for a while a few times: a limit of requests, a server that restarts, a connection that is cut. */
  async withRetries<T>(run: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof TemporaryError) || tries === TRIES) throw error;
        const delay = error.retryAfterMs ?? (this.options.retryDelayMs ?? 1000) * 2 ** (tries - 1);
        if (delay > LONGEST_WAIT_MS) throw error;
        await new Promise((resolve) => setTimeout(resolve, delay));
      }
    }
  }

  /**
   * Sends a request, with new authorization if the first answer asks for that.
   *
   * @throws ImageError when the registry cannot be reached, or refuses the credentials
   */
  async send(request: RegistryRequest): Promise<RegistryResponse> {
    const { scopes } = request;
    const response = await this.follow(request, this.auth.known(scopes));
    // Where a registry redirects to may not ask for the registry's credentials.
    if (response.status !== 401 || response.url.origin !== this.url.origin) return response;
    await discard(response);
    const { authorization, isToken } = await this.auth.authorize(response.headers['www-authenticate'], scopes);
    const again = await this.follow(request, authorization);
    // A token was given, so the credentials are good, and do not permit this.
    if (again.status !== 401 || isToken) return again;
    await discard(again);
    throw this.auth.refused();
  }

  /**
   * Sends a request whose answer must have one of these statuses, and reads its body.
   *
   * @param doing for messages: `pushing a to b`
   */
  async expect(request: RegistryRequest, statuses: readonly number[], doing: string): Promise<RegistryResponse> {
    const response = await this.send(request);
    if (!statuses.includes(response.status)) throw await this.unexpected(response, doing);
    await discard(response);
    return response;
  }

  /** The error for a response that is not wanted. Reads its body. */
  async unexpected(response: RegistryResponse, doing: string): Promise<ImageError> {
    const { status, url, headers } = response;
    const content = await readAll(response.body, MAX_DOCUMENT_BYTES);
    const said = this.clean(errorWords(content.toString())) || 'no reason';
    const from =
      url.origin === this.url.origin ? `the registry ${this.host}` : `${url.host}, to which ${this.host} redirects,`;
    const message = `${from} answered ${doing} with ${status} (${said}).${this.adviceFor(status)}`;
    if (!temporaryStatuses.includes(status)) return new ImageError(message);
    return new TemporaryError(message, retryAfterMs(headers['retry-after']));
  }

  private adviceFor(status: number): string {
    switch (status) {
      case 401:
      case 403:
        return ` ${this.auth.describe()} may not do that, or there is no such repository: check its name, or log in as somebody who may.`;
      case 404:
        return ' Check the name of the repository: some registries want it to be made first.';
      case 413:
        return ' It, or a proxy before it, limits the size of uploads: raise that limit.';
      case 429:
        return ' It limits how often it is asked: wait, or log in.';
      default:
        return '';
    }
  }

  /** A text of the registry for people: without secrets, should it repeat them, and without control characters. */
  clean(text: string): string {
    return this.auth
      .redact(text)
      .replaceAll(/\p{Cc}+/gu, ' ')
      .slice(0, 500);
  }

  /**
   * Where an upload goes on.
   *
   * @param at the URL before, which goes on if the registry names none
   * @throws ImageError when it is no URL, or has no TLS although the registry has it
   */
  location({ headers: { location } }: RegistryResponse, at: URL, doing: string): URL {
    if (location === undefined) return new URL(at);
    if (typeof location !== 'string' || !URL.canParse(location, this.url.href)) {
      throw new ImageError(
        `the registry ${this.host} names no place for the upload (${doing}): it breaks the protocol`,
      );
    }
    return this.withTls(new URL(location, this.url));
  }

  /** Behind a proxy that ends TLS, a registry may call itself http. @throws ImageError for another host without TLS */
  private withTls(url: URL): URL {
    if (this.url.protocol !== 'https:' || url.protocol === 'https:') return url;
    if (url.hostname !== this.url.hostname) {
      throw new ImageError(`the registry ${this.host} redirects to ${url.host} without TLS, which is refused`);
    }
    return new URL(`${url.pathname}${url.search}`, this.url);
  }

  /** Follows redirects, as registries send them to where they store blobs. Only the registry itself gets credentials. */
  private async follow(request: RegistryRequest, authorization: string | undefined): Promise<RegistryResponse> {
    let url = new URL(request.target, this.url);
    for (let count = 0; ; count += 1) {
      const isOwn = url.origin === this.url.origin;
      const headers = { ...request.headers, ...(isOwn && authorization !== undefined ? { authorization } : {}) };
      const { method, body } = request;
      const response = await this.exchange(url, { method, headers, body: body?.() ?? null });
      const { location } = response.headers;
      if (!redirects.includes(response.status) || method === 'PATCH' || typeof location !== 'string') return response;
      await discard(response);
      if (count >= MAX_REDIRECTS || !URL.canParse(location, url.href)) {
        throw new ImageError(`the registry ${this.host} redirects without end, or to what is no URL`);
      }
      url = this.withTls(new URL(location, url));
    }
  }

  private async exchange(
    url: URL,
    { method, headers, body }: Pick<Dispatcher.RequestOptions, 'method' | 'headers' | 'body'>,
  ): Promise<RegistryResponse> {
    try {
      const response = await this.agent.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: headers ?? null,
        body: body ?? null,
      });
      return { status: response.statusCode, headers: response.headers, body: this.reading(response.body, url), url };
    } catch (error) {
      throw error instanceof ImageError ? error : this.unreachable(url, error);
    }
  }

  /** The body of a response, whose connection may be cut. */
  private async *reading(body: Readable, url: URL): AsyncGenerator<Uint8Array> {
    try {
      yield* body as AsyncIterable<Uint8Array>;
    } catch (error) {
      throw error instanceof ImageError ? error : this.unreachable(url, error);
    }
  }

  private unreachable(url: URL, cause: unknown): ImageError {
    const code = codeOf(cause) ?? '';
    const what =
      url.host === this.url.host ? `the registry ${this.host}` : `${url.host}, to which ${this.host} refers,`;
    const message = `${what} cannot be reached: ${this.clean(messageOf(cause)).trim()}. ${connectionAdvice(code)}`;
    if (!/^(ECONNRESET|EPIPE|UND_ERR_SOCKET|EAI_AGAIN)$/.test(code)) return new ImageError(message, { cause });
    return new TemporaryError(message, undefined, { cause });
  }
}

/** Reads a body to its end, so that the connection can be used again. */
export async function discard({ body }: Pick<RegistryResponse, 'body'>): Promise<void> {
  for await (const _ of body);
}

function connectionAdvice(code: string): string {
  if (/^(ERR_SSL_|EPROTO)/.test(code)) return 'It may speak HTTP without TLS: give --plain-http=HOST if it does.';
  if (code === 'CERT_HAS_EXPIRED')
    return 'Its certificate has expired: it needs a new one. Check the clock of this machine too.';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'Its certificate is for another name: use that name.';
  if (/CERT|ISSUER|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code)) {
    return 'If its certificate is of your own authority, name the file of that in NODE_EXTRA_CA_CERTS.';
  }
  return 'Check its name, the network, and HTTPS_PROXY if you need a proxy.';
}

/** Requests to other machines use the proxy that the environment names. @throws ImageError when that is no URL */
function proxyAgent(env: NodeJS.ProcessEnv = process.env): Dispatcher {
  const named = (name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined;
  const proxy = (name: string): string | undefined => {
    const value = named(name);
    // curl and Go take them without a scheme too.
    const url = value === undefined || value.includes('://') ? value : `http://${value}`;
    if (url === undefined || /^https?:\/\/[^\s]+$/.test(url)) return url;
    throw new ImageError(`${name} is not the URL of a proxy: give one such as http://proxy.example.com:3128`);
  };
  const [httpProxy, httpsProxy] = [proxy('HTTP_PROXY'), proxy('HTTPS_PROXY')];
  try {
    return new EnvHttpProxyAgent({
      ...(httpProxy === undefined ? {} : { httpProxy }),
      ...(httpsProxy === undefined ? {} : { httpsProxy }),
      noProxy: named('NO_PROXY') ?? '',
    });
  } catch {
    // Without the reason: a proxy's URL may have a password in it.
    throw new ImageError('HTTP_PROXY or HTTPS_PROXY is not the URL of a proxy, such as http://proxy.example.com:3128');
  }
}

/** The reasons in the body of an error, in the form of the specification. A proxy's page of HTML says less than the status. */
function errorWords(text: string): string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return '';
  }
  const errors: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, 'errors') : undefined;
  if (!Array.isArray(errors)) return '';
  return errors
    .filter((error): error is object => typeof error === 'object' && error !== null)
    .map((error) => ['code', 'message'].map((field): unknown => Reflect.get(error, field)))
    .map((words) => words.filter((word) => typeof word === 'string').join(': '))
    .join('; ');
}

function retryAfterMs(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : undefined;
}
