import type { Dispatcher } from 'undici';
import type { ResponseHeaders } from './exchange';

/** A GET whose answer is read as it comes. */
export interface ByteStreamRequest {
  readonly path: string;
  readonly headers: string[];
  readonly signal: AbortSignal;
  /** Fail when nothing at all arrived for this long, in milliseconds. */
  readonly idleTimeoutMs: number;
}

/** The stream went silent. */
export class IdleTimeout extends Error {
  override readonly name = 'IdleTimeout';
}

/** Reading from the socket pauses while more than this many bytes wait for the reader. */
const HIGH_WATER_BYTES = 1024 * 1024;

/**
 * The answer to one request as a stream of chunks, with back-pressure and a bound on silence.
 *
 * Guarantees: chunks that arrived before a failure are delivered before it; `close` frees the connection at once, at any time.
 */
export class ByteStream implements Dispatcher.DispatchHandler {
  /** The HTTP status; 0 until `opened` resolves. */
  code = 0;
  headers: ResponseHeaders = {};
  private controller: Dispatcher.DispatchController | undefined;
  private chunks: Buffer[] = [];
  private queuedBytes = 0;
  private ended = false;
  private failure: { readonly reason: unknown } | undefined;
  private wakeReader: (() => void) | undefined;
  private readonly idle: NodeJS.Timeout;

  constructor(
    dispatcher: Dispatcher,
    private readonly request: ByteStreamRequest,
  ) {
    const { path, headers, signal, idleTimeoutMs } = request;
    this.idle = setTimeout(this.onIdle, idleTimeoutMs);
    if (signal.aborted) {
      this.finish({ reason: signal.reason });
      return;
    }
    signal.addEventListener('abort', this.onAbort);
    dispatcher.dispatch({ method: 'GET', path, headers, body: null }, this);
  }

  /** Resolves when the status and the headers are there. */
  async opened(): Promise<void> {
    while (this.code === 0) {
      if (this.failure !== undefined) throw this.failure.reason;
      await this.change();
    }
  }

  /** The chunks that came since the last call; undefined at the end. */
  async read(): Promise<readonly Buffer[] | undefined> {
    for (;;) {
      if (this.chunks.length > 0) return this.take();
      if (this.failure !== undefined) throw this.failure.reason;
      if (this.ended) return undefined;
      await this.change();
    }
  }

  /** Ends the request and frees its connection. */
  close(): void {
    const open = !this.ended;
    this.finish(undefined);
    if (open) this.controller?.abort(new Error('the stream was closed by its reader'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.ended) controller.abort(new Error('no longer wanted'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, code: number, headers: ResponseHeaders): void {
    this.code = code;
    this.headers = headers;
    if (!this.ended) this.idle.refresh();
    this.wake();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.ended) return;
    this.chunks.push(chunk);
    this.queuedBytes += chunk.length;
    if (this.queuedBytes > HIGH_WATER_BYTES) controller.pause();
    this.idle.refresh();
    this.wake();
  }

  onResponseEnd(): void {
    this.finish(undefined);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.finish({ reason: error });
  }

  private take(): readonly Buffer[] {
    const { chunks } = this;
    this.chunks = [];
    this.queuedBytes = 0;
    if (this.controller?.paused === true) this.controller.resume();
    return chunks;
  }

  private change(): Promise<void> {
    return new Promise((resolve) => {
      this.wakeReader = resolve;
    });
  }

  private wake(): void {
    const wakeReader = this.wakeReader;
    this.wakeReader = undefined;
    wakeReader?.();
  }

  private finish(failure: { readonly reason: unknown } | undefined): void {
    if (this.ended) return;
    this.ended = true;
    this.failure = failure;
    clearTimeout(this.idle);
    this.request.signal.removeEventListener('abort', this.onAbort);
    this.wake();
  }

  private readonly onIdle = (): void => {
    // Paused means that we are slow, not the server.
    if (this.queuedBytes > 0) {
      this.idle.refresh();
      return;
    }
    const silence = new IdleTimeout(`nothing arrived for ${this.request.idleTimeoutMs / 1000} s`);
    this.finish({ reason: silence });
    this.controller?.abort(silence);
  };

  private readonly onAbort = (): void => {
    const reason: unknown = this.request.signal.reason;
    this.chunks = [];
    this.finish({ reason });
    this.controller?.abort(reason instanceof Error ? reason : new Error('aborted', { cause: reason }));
  };
}
