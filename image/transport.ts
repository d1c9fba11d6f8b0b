import type { Readable } from 'node:stream';
import { dockerConfigFile, dockerCredentials } from './credentials';
import { HttpClient, discard, errorOfStatus, isRedirect } from './http';
import type { HttpRequest, HttpResponse } from './http';
import { ImageError, MAX_DOCUMENT_BYTES, readAll } from './oci';
import { registryUrl } from './reference';
import { RegistryAuth } from './registry-auth';

/** Options of {@link RegistryTransport}. */
export interface TransportOptions {
  /** Speak HTTP, without TLS. @default only to registries on this machine */
  readonly plainHttp?: boolean;
  /** Finds the credentials and the proxy. @default that of this process */
  readonly env?: NodeJS.ProcessEnv;
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

const MAX_REDIRECTS = 5;

/**
 * Sends requests to one registry, with authorization where it asks for that. Only the registry itself gets it: no host that it redirects
 * to, and nothing without TLS if the registry has TLS.
 */
export class RegistryTransport {
  readonly url: URL;
  private readonly auth: RegistryAuth;
  private readonly client: HttpClient;

  /** @param host the registry as references name it: `docker.io` */
  constructor(
    readonly host: string,
    { plainHttp = false, env }: TransportOptions = {},
  ) {
    this.url = registryUrl(host, plainHttp);
    this.client = new HttpClient({ url: this.url, env, nameOf: (url) => this.nameOf(url) });
    this.auth = new RegistryAuth(this.url, {
      host,
      send: (url, request) => this.exchange(url, request),
      configFile: dockerConfigFile(env),
      credentials: () => dockerCredentials(host, env),
    });
  }

  async close(): Promise<void> {
    await this.client.close();
  }

  /**
   * Sends a request, with new authorization if the first answer asks for that.
   *
   * @throws ImageError when the registry cannot be reached, or refuses the credentials
   */
  async send(request: RegistryRequest): Promise<HttpResponse> {
    const { scopes } = request;
    const response = await this.follow(request, this.auth.known(scopes));
    // Where a registry redirects to may not ask for the registry's credentials.
    if (response.status !== 401 || !this.isOwn(response.url)) return response;
    await discard(response);
    const { authorization, isToken } = await this.auth.authorize(response.headers['www-authenticate'], scopes);
    const again = await this.follow(request, authorization);
    // A token was given, so the credentials are good, and do not permit this.
    if (again.status !== 401 || isToken || !this.isOwn(again.url)) return again;
    await discard(again);
    throw this.auth.refused();
  }

  /**
   * Sends a request whose answer must have one of these statuses, and does not read its body.
   *
   * @param doing for messages: `pushing a to b`
   */
  async expect(request: RegistryRequest, statuses: readonly number[], doing: string): Promise<HttpResponse> {
    const response = await this.send(request);
    if (!statuses.includes(response.status)) throw await this.unexpected(response, doing);
    await discard(response);
    return response;
  }

  /** The error for a response that is not wanted. Reads its body. */
  async unexpected(response: HttpResponse, doing: string): Promise<ImageError> {
    const { status, url } = response;
    // A body that is too long, or cut, says less than the status.
    const content = await readAll(response.body, MAX_DOCUMENT_BYTES).catch(() => Buffer.of());
    const said = this.auth.redact(errorWords(content.toString())).slice(0, 500) || 'no reason';
    const advice = this.isOwn(url)
      ? this.adviceFor(status)
      : ' There it stores what it holds: ask whoever runs the registry, or the network between.';
    return errorOfStatus(`${this.nameOf(url)} answered ${doing} with ${status} (${said}).${advice}`, response);
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

  /**
   * Where an upload goes on.
   *
   * @param at the URL before, which goes on if the registry names none
   * @throws ImageError when it is no URL, or has no TLS although the registry has it
   */
  location({ headers: { location } }: Pick<HttpResponse, 'headers'>, at: URL, doing: string): URL {
    if (location === undefined) return new URL(at);
    return this.next(String(location), this.url, doing);
  }

  /** The URL that a header Location names, with TLS if the registry has it. */
  private next(location: string, from: URL, doing: string): URL {
    const url = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      throw new ImageError(
        `the registry ${this.host} answered ${doing} with a Location that is no URL of the web. Its software, or a proxy before it, is at fault.`,
      );
    }
    if (this.url.protocol !== 'https:' || url.protocol === 'https:') return url;
    if (url.hostname !== this.url.hostname) {
      throw new ImageError(`the registry ${this.host} redirects to ${url.host} without TLS, which is refused`);
    }
    // Behind a proxy that ends TLS, a registry may call itself http.
    return new URL(`${url.pathname}${url.search}`, this.url);
  }

  /** Follows redirects, as registries send them to where they store blobs. Only the registry itself gets credentials. */
  private async follow(request: RegistryRequest, authorization: string | undefined): Promise<HttpResponse> {
    const { method, body } = request;
    let url = new URL(request.target, this.url);
    for (let count = 0; ; count += 1) {
      const own = this.isOwn(url) && authorization !== undefined ? { authorization } : {};
      const headers = { ...request.headers, ...own };
      const response = await this.exchange(url, { method, headers, body: body?.() ?? null });
      if (!isRedirect(response) || method === 'PATCH') return response;
      await discard(response);
      if (count >= MAX_REDIRECTS) throw new ImageError(`the registry ${this.host} redirects without end`);
      url = this.next(String(response.headers['location']), url, `${method} ${url.pathname}`);
    }
  }

  private async exchange(url: URL, request: HttpRequest): Promise<HttpResponse> {
    return this.client.request(url, request);
  }

  private isOwn(url: URL): boolean {
    return url.origin === this.url.origin;
  }

  private nameOf(url: URL): string {
    return this.isOwn(url) ? `the registry ${this.host}` : `${url.host}, to which the registry ${this.host} refers,`;
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
