import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { Pool } from 'undici';
import type { Dispatcher } from 'undici';

/*
 * Sends prepared requests over pooled connections and does nothing else: no rendering, no parsing of answers. A program of its own, so that
 * its CPU time and memory are known as an operator's are.
 *
 *     node bare-loop.cjs <file of requests> <concurrency>
 *
 * The first line on stdin tells where the server is and who asks: secrets do not belong among the arguments. When all is answered, it
 * logs `sent` and waits for the end of stdin, so that somebody can look at what it has used.
 */

/** Where the server is and how to be let in. */
export interface BareAccess {
  readonly server: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

/** Sends one request; of the answer, nothing but a refusal is kept. */
function exchange(pool: Pool, options: Dispatcher.DispatchOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    let code = 0;
    let refusal = '';
    pool.dispatch(options, {
      onRequestStart: () => undefined,
      onResponseStart: (_, statusCode) => (code = statusCode),
      onResponseData: (_, chunk) => {
        if (code > 201) refusal += chunk.toString();
      },
      onResponseEnd: () => {
        if (code <= 201) resolve();
        else reject(new Error(`${options.method} ${options.path}: ${refusal}`));
      },
      onResponseError: (_, error) => reject(error),
    });
  });
}

/** A line of the file: requests that are sent one after the other, each four fields, all separated by tabs, which JSON has none of. */
async function sendLine(pool: Pool, headers: BareAccess['headers'], line: string): Promise<void> {
  const fields = line.split('\t');
  for (let i = 0; i < fields.length; i += 4) {
    const [method = '', path = '', type = '', body = ''] = fields.slice(i, i + 4);
    const all = { ...headers, accept: 'application/json', 'content-type': type };
    await exchange(pool, { method, path, headers: all, body });
  }
}

/** Line by line: all at once would be most of the memory that is measured. */
async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of createReadStream(file, 'utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

function accessFromStdin(): Promise<BareAccess> {
  return new Promise((resolve) => {
    let told = '';
    process.stdin.setEncoding('utf8').on('data', (chunk: string) => {
      told += chunk;
      if (told.includes('\n')) resolve(JSON.parse(told) as BareAccess);
    });
  });
}

async function main(file: string, concurrency: number): Promise<void> {
  const ended = once(process.stdin, 'end');
  const { server, headers, tls } = await accessFromStdin();
  const pool = new Pool(server, { connections: concurrency, pipelining: 1, connect: { ...tls, noDelay: true } });
  const lines = linesOf(file);
  const worker = async (): Promise<void> => {
    for await (const line of lines) await sendLine(pool, headers, line);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  console.log(JSON.stringify({ level: 'info', msg: 'sent', time: new Date().toISOString() }));
  await ended;
  await pool.destroy();
}

const [file = '', concurrency = '1'] = process.argv.slice(2);
main(file, Number(concurrency)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});
