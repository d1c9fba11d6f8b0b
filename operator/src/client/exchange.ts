import type { Dispatcher } from 'undici';

/** The headers of an answer, names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** One HTTP request. */
export interface ExchangeRequest {
  readonly method: Dispatcher.HttpMethod;
  /** Path and query. */
  readonly path: string;
  /** Name, value, name, value, ... */
  readonly headers: string[];
  readonly body?: string;
  /** Upper bound of waiting for a connection, and then again of the exchange itself, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** The whole answer. */
export interface ExchangeResponse {
  readonly code: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
}

/** An exchange that brought no whole answer. */
export class ExchangeFailure extends Error {
  override readonly name = 'ExchangeFailure';
  constructor(
    override readonly cause: Error,
    /** False when the request surely never left. */
    readonly sent: boolean,
    /** True when the answer had begun. */
    readonly answered: boolean,
  ) {
    super(cause.message, { cause });
  }
}

/** No answer within the time allowed. */
export class ExchangeTimeout extends Error {
  override readonly name = 'ExchangeTimeout';
}

/**
 * Sends one request and reads the whole answer.
 * @throws ExchangeFailure when the connection fails, is cut, or takes too long.
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

  constructor(
    private readonly request: ExchangeRequest,
    private readonly resolve: (response: ExchangeResponse) => void,
    private readonly reject: (reason: unknown) => void,
  ) {}

  start(dispatcher: Dispatcher): void {
    const { method, path, headers, body, signal, timeoutMs } = this.request;
    if (signal?.aborted === true) {
      this.fail(signal.reason);
      return;
    }
    signal?.addEventListener('abort', this.onAbort);
    this.timer = setTimeout(this.onTimeout, timeoutMs);
    dispatcher.dispatch({ method, path, headers, body: body ?? null }, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.settled) controller.abort(new Error('no longer wanted'));
    else this.timer?.refresh();
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
    this.fail(new ExchangeFailure(error, this.controller !== undefined, this.code !== 0));
  }

  private readonly onTimeout = (): void => {
    const sent = this.controller !== undefined;
    const seconds = this.request.timeoutMs / 1000;
    const cause = new ExchangeTimeout(
      sent ? `no whole answer within ${seconds} s` : `no connection within ${seconds} s`,
    );
    this.fail(new ExchangeFailure(cause, sent, this.code !== 0));
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
