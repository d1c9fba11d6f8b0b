import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { WatchEvent } from './api-client';
import { statusFrom } from './api-status';
import type { ByteStream } from './byte-stream';
import { ApiError } from './errors';
import { LineDecoder } from './line-decoder';

/** The stream ended inside a line: the answer was cut, not ended. */
export class CutStream extends Error {
  override readonly name = 'CutStream';
}

/** What the events of a watch are read with. */
export interface WatchReading {
  /** For messages. */
  readonly request: string;
  readonly open: () => Promise<ByteStream>;
  /** See `WatchOptions`. */
  readonly takeEcho?: ((resourceVersion: string) => boolean) | undefined;
  /** An error as the caller is to see it. */
  readonly failure: (error: unknown) => unknown;
}

/**
 * The events of a watch, which is opened when the first is asked for.
 *
 * Guarantees: each line is parsed at most once; the connection is freed however the reader leaves.
 *
 * @throws what `open` throws; and, as `failure` turns it: ApiError for an in-stream error, for example 410 Expired; CutStream when the last
 * line has no end; SyntaxError or RangeError for what is no event; what the connection fails with.
 */
export async function* watchEvents(reading: WatchReading): AsyncGenerator<WatchEvent, void, undefined> {
  const stream = await reading.open();
  const decoder = new LineDecoder();
  try {
    for (let chunks = await stream.read(); chunks !== undefined; chunks = await stream.read()) {
      for (const chunk of chunks) {
        for (const line of decoder.push(chunk)) {
          if (!isTaken(line, reading.takeEcho)) yield toEvent(line, reading.request);
        }
      }
    }
    if (decoder.pendingBytes > 0) {
      throw new CutStream(`the stream ended ${decoder.pendingBytes} bytes into an event; it was cut on the way`);
    }
  } catch (error) {
    throw reading.failure(error);
  } finally {
    stream.close();
  }
}

const CHANGE = /^{"type":"(?:ADDED|MODIFIED)"/;
const VERSION = '"resourceVersion":"';

/**
 * Whether a line need not be parsed. Where it holds this key only once, the key is that of the object itself, which always has one: within a
 * text its quotes would be escaped.
 */
function isTaken(line: string, take: WatchReading['takeEcho']): boolean {
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
      throw new ApiError(statusFrom(500, event.object), request);
    default:
      throw new SyntaxError(`the stream holds an event of unknown type ${JSON.stringify(event.type)}`);
  }
}

function parse(line: string): { readonly type: unknown; readonly object: KubeObject } {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // The parser's own message quotes the line, which may be part of a Secret.
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
