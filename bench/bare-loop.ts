import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { Pool } from 'undici';
import type { Dispatcher } from 'undici';

/*
 * Sends prepared requests over pooled connections and does nothing else: no rendering, no parsing of
 * responses. It is a separate program, so that its CPU time and memory can be measured like an operator's.
 *
 *     node bare-loop.cjs <file of requests> <concurrency>
 *
 * The first line on stdin contains the server's address and the credentials, since secrets do not belong in
 * arguments. After the last response, it logs `sent` and waits for the end of stdin, so that its resource
 * usage can be read before it ends.
 */

/** The server's address and the credentials. */
export interface BareAccess {
  readonly server: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

/** Sends one request. Of the response, only an error's body is kept. */
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

/**
 * Sends the requests of a line one after the other. Each has four fields, separated by tabs, which JSON does
 * not contain.
 */
async function sendLine(pool: Pool, headers: BareAccess['headers'], line: string): Promise<void> {
  const fields = line.split('\t');
  for (let i = 0; i < fields.length; i += 4) {
    const [method = '', path = '', type = '', body = ''] = fields.slice(i, i + 4);
    const all = { ...headers, accept: 'application/json', 'content-type': type };
    await exchange(pool, { method, path, headers: all, body });
  }
}

/** Reads the file line by line: all at once would be most of the measured memory. */
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
