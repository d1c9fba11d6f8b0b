import { errorMessage } from '../../constructs/kube/errors';
import { setTimeout as delay } from 'node:timers/promises';
import type { ResourceType } from '../../constructs/kube/resource-type';
import { untilAborted, withTimeout } from '../process/wait';
import { CredentialCache, type ClusterAccess, type CredentialCacheOptions, type Credentials } from './cluster-access';
import { Connections, type ConnectionOptions } from './connections';
import { ApiError, TransportError, errorCode, retryAfterSeconds, parseStatusText, toTransportError } from './errors';
import { ExchangeError, ExchangeTimeoutError, exchange, type ExchangeResponse, type ResponseHeaders } from './exchange';
import { ByteStream } from './watch-stream';

/**
 * One HTTP response, or the lack of one, for metrics.
 *
 * @testonly
 */
export interface ResponseObservation {
  readonly method: string;
  /** The HTTP status; `<error>` when there was no response, as client-go counts it. */
  readonly code: number | '<error>';
  /** From sending to the complete response; for a watch, to its headers. */
  readonly seconds: number;
  /** Undefined for paths that belong to no resource. */
  readonly type: ResourceType | undefined;
}

/** Options of the HTTP layer. */
export interface RequesterOptions extends ConnectionOptions {
  /** @default 'kindred/dev' */
  readonly userAgent?: string;
  /** Receives every HTTP response, each attempt of a retried request too. It must not throw. */
  readonly onResponse?: (observation: ResponseObservation) => void;
  readonly retry?: Partial<RetryPolicy>;
  readonly credentials?: CredentialCacheOptions;
  /**
   * Timeout of one attempt, and of waiting for credentials, in milliseconds, when the request has none of its
   * own.
   * @default 30000
   */
  readonly timeoutMs?: number;
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number;
}

/** How often and for how long a request is retried when the server asks for it. */
interface RetryPolicy {
  /** Number of attempts, the first included. @default 5 */
  readonly maxAttempts: number;
  /** Upper bound of the sum of a request's waits, in milliseconds. @default 30000 */
  readonly maxWaitMs: number;
}

const DEFAULT_RETRY_POLICY: RetryPolicy = { maxAttempts: 5, maxWaitMs: 30_000 };

/** One call of the API. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Without query, for messages. */
  readonly path: string;
  readonly query?: string;
  readonly type?: ResourceType;
  readonly body?: string;
  readonly contentType?: string;
  readonly accept?: string;
  /** True when repeating it has no further effect. */
  readonly idempotent: boolean;
  readonly timeoutMs?: number | undefined;
  readonly withinMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** See `RequestOptions`. */
  readonly urgent?: boolean | undefined;
}

/** A watch request. */
export interface StreamCall {
  readonly path: string;
  readonly query: string;
  readonly type: ResourceType;
  readonly signal: AbortSignal;
  readonly idleTimeoutMs: number;
}

const JSON_TYPE = 'application/json';

/** Sends calls over the connection pools; adds credentials, user agent, timeouts, retries and metrics. */
export class Requester {
  private readonly connections: Connections;
  private readonly credentials: CredentialCache;
  private readonly retry: RetryPolicy;
  private readonly basePath: string;
  private readonly userAgent: string;
  private readonly random: () => number;
  private headersOf: Credentials | undefined;
  private headerLists = new Map<string, string[]>();

  constructor(
    private readonly access: ClusterAccess,
    private readonly options: RequesterOptions = {},
  ) {
    const url = new URL(access.server);
    this.basePath = url.pathname === '/' ? '' : url.pathname.replace(/\/+$/, '');
    this.connections = new Connections(url.origin, options);
    this.credentials = new CredentialCache(access, options.credentials);
    this.retry = { ...DEFAULT_RETRY_POLICY, ...options.retry };
    this.userAgent = options.userAgent ?? 'kindred/dev';
    this.random = options.random ?? Math.random;
  }

  /**
   * The response to a call, whatever its status, after the retries that the server asked for.
   * @throws TransportError when there is none.
   * @throws the signal's reason when it is aborted.
   */
  async send(call: Call): Promise<ExchangeResponse> {
    let waitedMs = 0;
    let resets = 0;
    let renewed = false;
    const deadline = call.withinMs === undefined ? Infinity : performance.now() + call.withinMs;
    for (let attempt = 1; ; attempt++) {
      const credentials = await this.authenticate(call, { timeoutMs: this.timeoutMsOf(call), deadline });
      const response = await this.attempt(call, credentials, { mayRepeat: resets === 0, deadline });
      if (response === undefined) {
        resets++;
        continue;
      }
      if (response.code < 400) return response;
      if (response.code === 401 && !renewed) {
        renewed = true;
        this.credentials.reject(credentials);
        continue;
      }
      const progress = { attempt, waitedMs, idempotent: call.idempotent };
      const wait = retryDelayMs(this.retry, retryInfoOf(response), progress, this.random());
      if (wait === undefined || performance.now() + wait >= deadline) return response;
      waitedMs += wait;
      await pause(wait, call.signal);
    }
  }

  /**
   * Opens a watch.
   * @throws ApiError when the server rejects it.
   * @throws TransportError when there is no response.
   * @throws the signal's reason when it is aborted.
   */
  async open(call: StreamCall): Promise<ByteStream> {
    const name = `GET ${call.path}`;
    for (let renewed = false; ; renewed = true) {
      const credentials = await this.authenticate({ method: 'GET', ...call });
      const stream = await this.openOnce(call, credentials);
      if (stream.code === 200) return stream;
      const error = await this.toApiError(stream, name, call.signal);
      if (stream.code !== 401 || renewed) throw error;
      this.credentials.reject(credentials);
    }
  }

  /** Closes all connections; running requests fail. */
  async close(): Promise<void> {
    await this.connections.destroy(new Error('the client was closed'));
  }

  /** The error to throw to the caller: the reason of an aborted signal stays as it is. */
  failure(request: string, error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted === true) return signal.reason;
    if (error instanceof TransportError || error instanceof ApiError) return error;
    return toTransportError(request, this.access.server, error);
  }

  /**
   * Sends the call once. Undefined when a kept-alive connection turned out to be closed, and the call may be
   * repeated.
   */
  private async attempt(
    call: Call,
    credentials: Credentials,
    { mayRepeat, deadline }: { readonly mayRepeat: boolean; readonly deadline: number },
  ): Promise<ExchangeResponse | undefined> {
    const started = performance.now();
    if (started >= deadline) {
      // Fetching credentials can take long. A late call must not be sent at all.
      const request = `${call.method} ${call.path}`;
      throw new TransportError(`${request} was not sent: its ${String(call.withinMs)} ms were over before`, request);
    }
    const timeoutMs = this.timeoutMsOf(call);
    try {
      const { requests, unbounded } = this.connections.for(credentials.tls);
      const response = await exchange(call.urgent === true ? unbounded : requests, {
        method: call.method,
        path: `${this.basePath}${call.path}${call.query ?? ''}`,
        headers: this.headers(credentials, call.accept ?? JSON_TYPE, call.contentType),
        timeoutMs,
        withinMs: deadline === Infinity ? undefined : deadline - started,
        body: call.body,
        signal: call.signal,
      });
      this.observe(call.method, response.code, started, call.type);
      return response;
    } catch (error) {
      if (call.signal?.aborted === true) throw call.signal.reason;
      this.observe(call.method, '<error>', started, call.type);
      const cause = error instanceof ExchangeError ? error.cause : error;
      if (mayRepeat && call.idempotent && isIdleReset(error)) return undefined;
      throw toTransportError(`${call.method} ${call.path}`, this.access.server, cause);
    }
  }

  private async openOnce(call: StreamCall, credentials: Credentials): Promise<ByteStream> {
    const started = performance.now();
    try {
      const stream = new ByteStream(this.connections.for(credentials.tls).unbounded, {
        path: `${this.basePath}${call.path}${call.query}`,
        headers: this.headers(credentials, JSON_TYPE, undefined),
        signal: call.signal,
        idleTimeoutMs: call.idleTimeoutMs,
      });
      await stream.opened();
      this.observe('GET', stream.code, started, call.type);
      return stream;
    } catch (error) {
      if (!call.signal.aborted) this.observe('GET', '<error>', started, call.type);
      throw this.failure(`GET ${call.path}`, error, call.signal);
    }
  }

  private async toApiError(stream: ByteStream, request: string, signal: AbortSignal): Promise<ApiError> {
    const chunks: Buffer[] = [];
    try {
      for (let read = await stream.read(); read !== undefined; read = await stream.read()) chunks.push(...read);
    } catch (error) {
      throw this.failure(request, error, signal);
    } finally {
      stream.close();
    }
    const seconds = retryAfterSeconds(header(stream.headers, 'retry-after'), Date.now());
    return new ApiError(parseStatusText(stream.code, Buffer.concat(chunks).toString('utf8'), seconds), request);
  }

  /** The renewal of credentials continues after the request has ended; the next request uses them. */
  private async authenticate(
    { method, path, signal }: Pick<Call, 'method' | 'path' | 'signal'>,
    bounds?: { readonly timeoutMs: number; readonly deadline: number },
  ): Promise<Credentials> {
    signal?.throwIfAborted();
    try {
      const credentials = this.credentials.get();
      if (!(credentials instanceof Promise)) return credentials;
      const bounded =
        bounds && withCredentialsTimeout(credentials, Math.min(bounds.timeoutMs, bounds.deadline - performance.now()));
      return await untilAborted(bounded ?? credentials, signal);
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      const request = `${method} ${path}`;
      const why = errorMessage(error);
      throw new TransportError(`${request}: no credentials for ${this.access.server}: ${why}`, request, {
        cause: error,
      });
    }
  }

  private timeoutMsOf({ timeoutMs }: Call): number {
    return timeoutMs ?? this.options.timeoutMs ?? 30_000;
  }

  private headers(credentials: Credentials, accept: string, contentType: string | undefined): string[] {
    if (this.headersOf !== credentials) {
      this.headersOf = credentials;
      this.headerLists = new Map();
    }
    const key = `${accept} ${contentType ?? ''}`;
    let list = this.headerLists.get(key);
    if (list === undefined) {
      list = ['accept', accept, 'user-agent', this.userAgent, ...Object.entries(credentials.headers).flat()];
      if (contentType !== undefined) list.push('content-type', contentType);
      this.headerLists.set(key, list);
    }
    return list;
  }

  private observe(method: string, code: number | '<error>', started: number, type: ResourceType | undefined): void {
    this.options.onResponse?.({ method, code, seconds: (performance.now() - started) / 1000, type });
  }
}

/**
 * After how many milliseconds to retry, or undefined when the error response is final.
 *
 * 429 and 503 with `Retry-After` (throttling, start and shutdown of the server) mean that the request was not
 * processed, so any method is retried. After other 5xx responses it may have been, so only an idempotent one
 * is. A 503 without `Retry-After` is final.
 *
 * @param waitedMs what the request has waited already
 * @param random a number in [0, 1), to spread the clients
 */
function retryDelayMs(
  policy: RetryPolicy,
  refusal: RetryInfo,
  progress: { readonly attempt: number; readonly waitedMs: number; readonly idempotent: boolean },
  random: number,
): number | undefined {
  const { code, retryAfterSeconds } = refusal;
  if (progress.attempt >= policy.maxAttempts) return undefined;
  const unprocessed = code === 429 || code === 503;
  if (!unprocessed && !(code >= 500 && progress.idempotent)) return undefined;
  const seconds = retryAfterSeconds ?? (code === 429 ? DEFAULT_WAIT_SECONDS : undefined);
  if (seconds === undefined) return undefined;
  const delay = seconds * 1000 * (1 + random * 0.1);
  return progress.waitedMs + delay > policy.maxWaitMs ? undefined : delay;
}

/** The part of an error response that decides about another attempt. */
interface RetryInfo {
  readonly code: number;
  readonly retryAfterSeconds?: number;
}

/** The wait after a 429 without a `Retry-After`, in seconds. */
const DEFAULT_WAIT_SECONDS = 1;

function retryInfoOf(response: ExchangeResponse): { code: number; retryAfterSeconds?: number } {
  const { code } = response;
  if (code < 500 && code !== 429) return { code };
  const { retryAfterSeconds: seconds } = responseStatus(response);
  return seconds === undefined ? { code } : { code, retryAfterSeconds: seconds };
}

/** The `Status` of an error response. */
export function responseStatus(response: ExchangeResponse): ReturnType<typeof parseStatusText> {
  const seconds = retryAfterSeconds(header(response.headers, 'retry-after'), Date.now());
  return parseStatusText(response.code, response.body, seconds);
}

function header(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await delay(milliseconds, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    throw signal?.aborted === true ? signal.reason : error;
  }
}

function withCredentialsTimeout<T>(credentials: Promise<T>, milliseconds: number): Promise<T> {
  const late = (): never => {
    throw new Error(`none came within ${String(Math.round(milliseconds) / 1000)} s`);
  };
  return withTimeout(credentials, { milliseconds, onTimeout: late });
}

/** The error codes of a connection that was closed while it was idle. */
const RESET_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** True when the connection was closed before the first byte of the response. */
function isIdleReset(error: unknown): boolean {
  if (!(error instanceof ExchangeError) || error.answered || error.cause instanceof ExchangeTimeoutError) return false;
  return RESET_CODES.has(errorCode(error.cause));
}
