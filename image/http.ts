import type { Readable } from 'node:stream';
import { Agent, EnvHttpProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import { codeOf, messageOf } from '../local/assets/errors';
import { ImageError } from './oci';
import { isLoopback } from './reference';

/** A response of an HTTP server. Its body must be read, or given to {@link discard}. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  readonly body: AsyncIterable<Uint8Array>;
  readonly url: URL;
}

export type HttpRequest = Pick<Dispatcher.RequestOptions, 'method' | 'headers' | 'body'>;

/** Options of {@link HttpClient}. */
interface HttpClientOptions {
  /** A URL of the server that is asked first. It decides which proxy is used. */
  readonly url: URL;
  /** Names the server of a URL, for messages. */
  readonly nameOf: (url: URL) => string;
  /** Finds the proxy. @default that of this process */
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** Sends requests through the proxy of the environment, with errors that say what to do. */
export class HttpClient {
  private readonly agent: Dispatcher;

  /** @throws ImageError when the proxy of the environment cannot be used */
  constructor(private readonly options: HttpClientOptions) {
    const { url, env } = options;
    this.agent = isLoopback(url.host) ? new Agent() : proxyAgent(url, env);
  }

  /** Ends all connections, also those whose responses were not read. */
  async close(): Promise<void> {
    await this.agent.destroy();
  }

  /** Sends one request. Redirects are responses. @throws ImageError when there is no response */
  async request(url: URL, { method, headers, body }: HttpRequest): Promise<HttpResponse> {
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
    const message = `${this.options.nameOf(url)} cannot be reached: ${messageOf(cause).trim()}.${connectionAdvice(code)}`;
    if (!/^(ECONNRESET|EPIPE|UND_ERR_SOCKET|EAI_AGAIN)$/.test(code)) return new ImageError(message, { cause });
    return new TemporaryError(message, undefined, { cause });
  }
}

/** What may go better the next time: a busy server, one that restarts, a connection that was cut. */
class TemporaryError extends ImageError {
  constructor(
    message: string,
    /** When the server wants to be asked again. @default it does not say */
    readonly retryAfterMs: number | undefined,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The error for a response whose status is not wanted. */
export function errorOfStatus(
  message: string,
  { status, headers }: Pick<HttpResponse, 'status' | 'headers'>,
): ImageError {
  if (![429, 500, 502, 503, 504].includes(status)) return new ImageError(message);
  const after = headers['retry-after'];
  const isSeconds = typeof after === 'string' && /^\d{1,6}$/.test(after);
  return new TemporaryError(message, isSeconds ? Number(after) * 1000 : undefined);
}

const TRIES = 3;
/** A server that names a longer time is not waited for. */
const LONGEST_WAIT_MS = 30_000;

/** Runs what may fail with a {@link TemporaryError} up to three times. @param delayMs before the second try, doubled for the third one */
export async function withRetries<T>(run: () => Promise<T>, delayMs = 1000): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof TemporaryError) || tries === TRIES) throw error;
      const delay = error.retryAfterMs ?? delayMs * 2 ** (tries - 1);
      if (delay > LONGEST_WAIT_MS) throw error;
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
}

/** More of a body that nobody wants is not read: then the connection ends. */
const MOST_DISCARDED_BYTES = 64 * 1024;

/** Reads a body that nobody wants, so that its connection can be used again. */
export async function discard({ body }: Pick<HttpResponse, 'body'>): Promise<void> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > MOST_DISCARDED_BYTES) break;
  }
}

export function isRedirect({ status, headers }: HttpResponse): boolean {
  return [301, 302, 303, 307, 308].includes(status) && typeof headers['location'] === 'string';
}

function connectionAdvice(code: string): string {
  if (/^(ERR_SSL_|EPROTO)/.test(code)) return ' It may speak HTTP without TLS: give --plain-http=HOST if it does.';
  if (code === 'CERT_HAS_EXPIRED')
    return ' Its certificate has expired: it needs a new one. Check the clock of this machine too.';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return ' Its certificate is for another name: use that name.';
  if (/CERT|ISSUER|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code)) {
    return ' If its certificate is of your own authority, name the file of that in NODE_EXTRA_CA_CERTS.';
  }
  return /^E[A-Z]+$|TIMEOUT|UND_ERR_SOCKET/.test(code)
    ? ' Check its name, the network, and HTTPS_PROXY if you need a proxy.'
    : '';
}

/** An agent that uses the proxy for URLs like this one. @throws ImageError when that cannot be used */
function proxyAgent(url: URL, env: NodeJS.ProcessEnv = process.env): Dispatcher {
  const named = (name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined;
  const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const given = named(name);
  if (given === undefined) return new Agent();
  // curl and Go take them without a scheme too.
  const proxy = given.includes('://') ? given : `http://${given}`;
  // The value is not shown: it may have a password in it.
  const unusable = `${name} cannot be used: give the URL of a proxy with http:// or https://, such as http://proxy.example.com:3128`;
  if (!/^https?:\/\/\S+$/.test(proxy)) throw new ImageError(unusable);
  try {
    return new EnvHttpProxyAgent({ httpProxy: proxy, httpsProxy: proxy, noProxy: named('NO_PROXY') ?? '' });
  } catch {
    throw new ImageError(unusable);
  }
}
