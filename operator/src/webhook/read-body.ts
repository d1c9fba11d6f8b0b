import type { IncomingMessage } from 'node:http';

/**
 * The body of a request; undefined when it is longer than `limit` bytes. Then the rest is read and dropped, so that the client, which
 * listens only after it has written, hears the answer.
 *
 * @throws Error when the client goes away
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer | undefined> {
  let chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= limit) chunks.push(chunk);
    else chunks = [];
  }
  return size <= limit ? Buffer.concat(chunks) : undefined;
}
