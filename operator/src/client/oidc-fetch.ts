import { request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { CustomFetch } from 'openid-client';

/** More than any metadata or token answer has, in bytes. */
const MAX_BYTES = 1 << 20;

/**
 * Sends requests to an identity provider, trusting the given authority. `fetch` cannot be told whom to trust, and its first use
 * would load a second HTTP client into the process for a request an hour.
 * @param ca PEM; the system's authorities when absent
 */
export function fetchTrusting(ca: Buffer | undefined): CustomFetch {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const options = { method, headers, agent: false, ...(ca === undefined ? {} : { ca }), ...(signal && { signal }) };
      const sent = request(url, options, (answer) => {
        responseOf(answer)
          .finally(() => sent.destroy())
          .then(resolve, reject);
      });
      sent.on('error', reject);
      // The library sends forms and nothing else.
      sent.end(body instanceof URLSearchParams ? body.toString() : undefined);
    });
}

async function responseOf(answer: IncomingMessage): Promise<Response> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Error('its answer is too long');
    chunks.push(chunk);
  }
  const status = answer.statusCode ?? 0;
  const bodiless = status === 204 || status === 304;
  const type = answer.headers['content-type'];
  return new Response(bodiless ? null : Buffer.concat(chunks), {
    status,
    headers: type === undefined ? {} : { 'content-type': type },
  });
}
