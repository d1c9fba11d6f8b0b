import type { KubeObject } from '../../../constructs/core/kube-object';
import type { WatchEvent } from './api-client';
import { statusFrom } from './api-status';
import type { ByteStream } from './byte-stream';
import { ApiError } from './errors';
import { LineDecoder } from './line-decoder';

/** The stream ended inside a line: the answer was cut, not ended. */
export class CutStream extends Error {
  override readonly name = 'CutStream';
}

/**
 * The events of an opened watch.
 *
 * Guarantees: each line is parsed once; the connection is freed however the reader leaves.
 *
 * @throws ApiError for an in-stream error, for example 410 Expired.
 * @throws CutStream when the last line has no end; SyntaxError or RangeError for what is no event; what the connection fails with.
 */
export async function* watchEvents(stream: ByteStream, request: string): AsyncGenerator<WatchEvent, void, undefined> {
  const decoder = new LineDecoder();
  try {
    for (let chunks = await stream.read(); chunks !== undefined; chunks = await stream.read()) {
      for (const chunk of chunks) {
        for (const line of decoder.push(chunk)) yield toEvent(line, request);
      }
    }
  } finally {
    stream.close();
  }
  if (decoder.pendingBytes > 0) {
    throw new CutStream(`the stream ended ${decoder.pendingBytes} bytes into an event; it was cut on the way`);
  }
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
