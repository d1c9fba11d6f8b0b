import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ApiClient } from '../../operator/client/api-client';
import { AuditLogTail } from '../../bench/audit';

let folder: string;
let log: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'audit-tail-'));
  log = join(folder, 'audit.log');
});

afterEach(() => rm(folder, { recursive: true }));

function line(user: string, more: object): string {
  return `${JSON.stringify({ user: { username: user }, ...more })}\n`;
}

/** A server that logs each request of ours. */
function server(): ApiClient {
  const getPath = (requestURI: string): Promise<unknown> => appendFile(log, line('admin', { requestURI }));
  return { getPath } as Partial<ApiClient> as ApiClient;
}

test('each call tells what came since the last, of the account alone, wherever the chunks end', async () => {
  const tail = new AuditLogTail(log, server());
  const many = Array.from({ length: 3000 }, (_, i) => line('operator', { i, note: 'ü'.repeat(300) }));
  await writeFile(log, many.join('') + line('somebody', { i: -1 }));
  expect((await tail.since('operator')).map((event) => (event as unknown as { i: number }).i)).toEqual([
    ...many.keys(),
  ]);
  expect(await tail.since('operator')).toEqual([]);
  await appendFile(log, line('operator', { i: 7 }));
  expect(await tail.since('operator')).toHaveLength(1);
});
