import type { Dispatcher } from 'undici';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { WatchEvent } from './api-client';
import { ApiError, parseStatus } from './errors';
import type { ResponseHeaders } from './exchange';

/** How to open and read a watch. */
interface WatchStreamOptions {
  /** For messages. */
  readonly request: string;
  readonly open: () => Promise<ByteStream>;
  /** See `WatchOptions`. */
  readonly skipOwnEcho?: ((resourceVersion: string) => boolean) | undefined;
  /** Converts an error to the one that the caller receives. */
  readonly failure: (error: unknown) => unknown;
}

/**
 * The events of a watch, which is opened when the first one is requested.
 *
 * Guarantees: each line is parsed at most once; the connection is freed however the caller stops reading.
 *
 * @throws what `open` throws. All other errors go through `failure`: ApiError for an in-stream error, for
 * example 410 Expired; TruncatedStreamError when the last line has no end; SyntaxError or RangeError for a
 * line that is not an event; errors of the connection.
 */
export async function* watchEvents(reading: WatchStreamOptions): AsyncGenerator<WatchEvent, void, undefined> {
  const stream = await reading.open();
  const decoder = new LineDecoder();
  try {
    for (let chunks = await stream.read(); chunks !== undefined; chunks = await stream.read()) {
      for (const chunk of chunks) {
        for (const line of decoder.push(chunk)) {
          if (!isOwnEcho(line, reading.skipOwnEcho)) yield toEvent(line, reading.request);
        }
      }
    }
    if (decoder.pendingBytes > 0) {
      throw new TruncatedStreamError(
        `the stream ended ${decoder.pendingBytes} bytes into an event; it was cut on the way`,
      );
    }
  } catch (error) {
    throw reading.failure(error);
  } finally {
    stream.close();
  }
}

/** The stream ended inside a line: the response was cut off. */
class TruncatedStreamError extends Error {
  override readonly name = 'TruncatedStreamError';
}

const CHANGE = /^{"type":"(?:ADDED|MODIFIED)"/;
const VERSION = '"resourceVersion":"';

/**
 * Whether the line is the echo of an own write, so that it need not be parsed. When this key occurs only once
 * in the line, it is that of the object itself, which always has one: quotes inside a string would be
 * escaped.
 */
function isOwnEcho(line: string, take: WatchStreamOptions['skipOwnEcho']): boolean {
  if (take === undefined || !CHANGE.test(line)) return false;
  const start = line.indexOf(VERSION) + VERSION.length;
  if (start < VERSION.length || line.includes(VERSION, start)) return false;
  return take(line.slice(start, line.indexOf('"', start)));
}

function toEvent(line: string, request: string): WatchEvent {
  const event = parse(line);
  switch (event.type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
    case 'BOOKMARK':
      return event as WatchEvent;
    case 'ERROR':
      throw new ApiError(parseStatus(500, event.object), request);
    default:
      throw new SyntaxError(`the stream holds an event of unknown type ${JSON.stringify(event.type)}`);
  }
}

function parse(line: string): { readonly type: unknown; readonly object: KubeObject } {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // The parser's message quotes the line, which may be part of a Secret.
    throw new SyntaxError(`the stream holds a line of ${line.length} characters that is not JSON`);
  }
  if (typeof value !== 'object' || value === null || !('type' in value) || !('object' in value)) {
    throw new SyntaxError('the stream holds a line that is not a watch event');
  }
  if (typeof value.object !== 'object' || value.object === null) {
    throw new SyntaxError(`the stream holds a ${JSON.stringify(value.type)} event without an object`);
  }
  return value as { readonly type: unknown; readonly object: KubeObject };
}

/** A GET whose response is read as a stream. */
interface ByteStreamRequest {
  readonly path: string;
  readonly headers: string[];
  readonly signal: AbortSignal;
  /** Fail when nothing arrives for this long, in milliseconds. */
  readonly idleTimeoutMs: number;
}

/** Nothing arrived on the stream for `idleTimeoutMs`. */
export class IdleTimeoutError extends Error {
  override readonly name = 'IdleTimeoutError';
}

/** Reading from the socket pauses while more than this many bytes wait for the reader. */
const HIGH_WATER_BYTES = 1024 * 1024;

/**
 * The response to one request as a stream of chunks, with back-pressure and an idle timeout.
 *
 * Guarantees: chunks that arrived before a failure are delivered before it; `close` frees the connection at
 * once, at any time.
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

  /** Resolves when the status and the headers have arrived. */
  async opened(): Promise<void> {
    while (this.code === 0) {
      if (this.failure !== undefined) throw this.failure.reason;
      await this.change();
    }
  }

  /** The chunks that arrived since the last call; undefined at the end. */
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
    // Chunks are waiting: the reader is slow, not the server.
    if (this.queuedBytes > 0) {
      this.idle.refresh();
      return;
    }
    const silence = new IdleTimeoutError(`nothing arrived for ${this.request.idleTimeoutMs / 1000} s`);
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

const NEWLINE = 0x0a;

/**
 * Splits a byte stream into lines, wherever its chunks are cut, even inside a UTF-8 sequence.
 *
 * Guarantees: each byte is scanned once and copied at most once; a line that came in one chunk is not copied
 * at all.
 *
 * @testonly
 */
export class LineDecoder {
  private parts: Buffer[] = [];
  private partsLength = 0;

  /** @param maxLineBytes A longer line is rejected: no Kubernetes object is that large. @default 64 MiB */
  constructor(private readonly maxLineBytes = 64 * 1024 * 1024) {}

  /** The number of bytes that wait for the end of their line. */
  get pendingBytes(): number {
    return this.partsLength;
  }

  /**
   * The lines that this chunk completes, without line ends; empty lines are skipped.
   * @throws RangeError when a line exceeds `maxLineBytes`.
   */
  *push(chunk: Buffer): Generator<string, void, undefined> {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = this.partsLength === 0 ? chunk.toString('utf8', start, end) : this.join(chunk.subarray(start, end));
      start = end + 1;
      if (line !== '' && line !== '\r') yield line;
    }
    if (start < chunk.length) this.keep(start === 0 ? chunk : chunk.subarray(start));
  }

  private join(rest: Buffer): string {
    const line = Buffer.concat([...this.parts, rest], this.partsLength + rest.length).toString('utf8');
    this.parts = [];
    this.partsLength = 0;
    return line;
  }

  private keep(part: Buffer): void {
    this.partsLength += part.length;
    if (this.partsLength > this.maxLineBytes) {
      throw new RangeError(`a line of the stream is longer than ${this.maxLineBytes} bytes`);
    }
    this.parts.push(part);
  }
}
