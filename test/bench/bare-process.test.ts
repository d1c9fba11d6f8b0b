import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Usage } from '../../bench/results';
import { bareBundle, sendBare, type RequestPair } from '../../bench/bare-requests';

const told: { readonly line: string; readonly token: string | undefined; readonly body: string }[] = [];
const server = createServer((request, response) => {
  void textOf(request).then((body) => {
    const { method, url = '', headers } = request;
    told.push({
      line: `${String(method)} ${url} ${String(headers['content-type'])}`,
      token: headers.authorization,
      body,
    });
    response.statusCode = url.startsWith('/refused') ? 409 : 201;
    response.end('an answer');
  });
});
let folder: string;
let bundle: string;

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8') as AsyncIterable<string>) text += chunk;
  return text;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bare-process-'));
  bundle = await bareBundle(folder);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

beforeEach(() => void told.splice(0));

function send(pairs: readonly RequestPair[]): Promise<Usage> {
  const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  const access = { server: url, headers: { authorization: 'Bearer token' }, tls: {} };
  return sendBare(pairs, { bundle, access, env: {}, concurrency: 4, signal: new AbortController().signal });
}

function pair(at: string): RequestPair {
  const body = JSON.stringify({ text: `ü\t\n${'x'.repeat(30_000)}` });
  return [
    { method: 'POST', path: `${at}/create`, type: 'application/json', body },
    { method: 'PATCH', path: `${at}/status`, type: 'application/apply-patch+yaml', body: '{}' },
  ];
}

test('every pair is sent, one request after the other, and what the process used is told', async () => {
  const usage = await send(Array.from({ length: 20 }, (_, i) => pair(`/${String(i)}`)));
  expect(told).toHaveLength(40);
  for (let i = 0; i < 20; i += 1) {
    const own = told.filter(({ line }) => line.includes(` /${String(i)}/`));
    expect(own.map(({ line }) => line)).toEqual([
      `POST /${String(i)}/create application/json`,
      `PATCH /${String(i)}/status application/apply-patch+yaml`,
    ]);
    expect(own[0]?.body).toBe(pair('')[0].body);
    expect(own[0]?.token).toBe('Bearer token');
  }
  if (process.platform !== 'linux') return;
  expect(usage.cpuSeconds).toBeGreaterThan(0);
  expect(usage.peakMiB).toBeGreaterThan(20);
});

test('a refusal is told', async () => {
  await expect(send([pair('/refused')])).rejects.toThrow('POST /refused/create: an answer');
});
