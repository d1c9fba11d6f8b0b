import type { Dispatcher } from 'undici';

/** The headers of a response, names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** One HTTP request. */
export interface ExchangeRequest {
  readonly method: Dispatcher.HttpMethod;
  /** Path and query. */
  readonly path: string;
  /** Name, value, name, value, ... */
  readonly headers: string[];
  readonly body?: string | undefined;
  /** Timeout of waiting for a connection, and again of the exchange itself, in milliseconds. */
  readonly timeoutMs: number;
  /** Timeout of both together, in milliseconds; up to 100 ms are cut off. @default none */
  readonly withinMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A complete response. */
export interface ExchangeResponse {
  readonly code: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
}

/** An exchange without a complete response. */
export class ExchangeError extends Error {
  override readonly name = 'ExchangeError';
  constructor(
    override readonly cause: Error,
    /** False when the request was certainly not sent. */
    readonly sent: boolean,
    /** True when the response had begun. */
    readonly answered: boolean,
  ) {
    super(cause.message, { cause });
  }
}

/** No response within the timeout. */
export class ExchangeTimeoutError extends Error {
  override readonly name = 'ExchangeTimeoutError';
}

/**
 * Sends one request and reads the complete response.
 * @throws ExchangeError when the connection fails, is cut, or takes too long.
 * @throws the signal's reason when it is aborted.
 */
export function exchange(dispatcher: Dispatcher, request: ExchangeRequest): Promise<ExchangeResponse> {
  return new Promise((resolve, reject) => {
    new Exchange(request, resolve, reject).start(dispatcher);
  });
}

class Exchange implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | undefined;
  private settled = false;
  private code = 0;
  private headers: ResponseHeaders = {};
  private chunks: Buffer[] = [];
  private timer: NodeJS.Timeout | undefined;
  private boundMs: number;

  constructor(
    private readonly request: ExchangeRequest,
    private readonly resolve: (response: ExchangeResponse) => void,
    private readonly reject: (reason: unknown) => void,
  ) {
    this.boundMs = request.timeoutMs;
  }

  start(dispatcher: Dispatcher): void {
    const { method, path, headers, body, signal, timeoutMs, withinMs } = this.request;
    if (signal?.aborted === true) {
      this.fail(signal.reason);
      return;
    }
    signal?.addEventListener('abort', this.onAbort);
    if (withinMs !== undefined) this.boundMs = Math.min(timeoutMs, grained(withinMs));
    this.timer = setTimeout(this.onTimeout, this.boundMs);
    dispatcher.dispatch({ method, path, headers, body: body ?? null }, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.settled) controller.abort(new Error('no longer wanted'));
    else if (this.request.withinMs === undefined) this.timer?.refresh();
  }

  onResponseStart(_controller: Dispatcher.DispatchController, code: number, headers: ResponseHeaders): void {
    this.code = code;
    this.headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (!this.settle()) return;
    const { chunks, code, headers } = this;
    const [first] = chunks;
    const body = first === undefined ? '' : (chunks.length === 1 ? first : Buffer.concat(chunks)).toString('utf8');
    this.resolve({ code, headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(new ExchangeError(error, this.controller !== undefined, this.code !== 0));
  }

  private readonly onTimeout = (): void => {
    const sent = this.controller !== undefined;
    const seconds = this.boundMs / 1000;
    const cause = new ExchangeTimeoutError(
      sent ? `no whole answer within ${seconds} s` : `no connection within ${seconds} s`,
    );
    this.fail(new ExchangeError(cause, sent, this.code !== 0));
    this.controller?.abort(cause);
  };

  private readonly onAbort = (): void => {
    const reason: unknown = this.request.signal?.reason;
    this.fail(reason);
    this.controller?.abort(reason instanceof Error ? reason : new Error('aborted', { cause: reason }));
  };

  private settle(): boolean {
    if (this.settled) return false;
    this.settled = true;
    clearTimeout(this.timer);
    this.request.signal?.removeEventListener('abort', this.onAbort);
    return true;
  }

  private fail(reason: unknown): void {
    if (this.settle()) this.reject(reason);
  }
}

/**
 * Rounds down, because Node keeps a list of timers for each duration, and each remaining deadline would be
 * another one.
 */
function grained(milliseconds: number): number {
  return milliseconds < 100 ? milliseconds : Math.floor(milliseconds / 100) * 100;
}
