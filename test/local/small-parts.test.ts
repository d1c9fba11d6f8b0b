import { EventEmitter, once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { waitFor } from '../../testing/wait-for';
import { readAuditLog } from '../../local/control-plane';
import { renderKubeconfig } from '../../local/rest-client';
import { freePort, requireFree } from '../../local/ports';
import { duration, size } from '../../local/assets/progress';
import { temporaryFolder } from '../support/temporary-folder';

test('a taken port is refused before anything is started; a free one is not', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await expect(requireFree(port)).rejects.toThrow(`port ${port} on 127.0.0.1 is taken. Nothing was started.`);
  await new Promise((resolve) => server.close(resolve));
  await expect(requireFree(port)).resolves.toBeUndefined();
  expect(await freePort()).toBeGreaterThan(1023);
});

test('a kubeconfig stands by itself', () => {
  const content = { server: 'https://127.0.0.1:1', authority: 'CA', user: 'jane' };
  const read = (text: string) => parse(text) as { users: [{ user: unknown }]; 'current-context': string };
  expect(read(renderKubeconfig({ ...content, credentials: { token: 'abc' } })).users[0].user).toEqual({ token: 'abc' });
  expect(read(renderKubeconfig({ ...content, credentials: { certificate: 'C', key: 'K' } })).users[0].user).toEqual({
    'client-certificate-data': 'Qw==',
    'client-key-data': 'Sw==',
  });
});

test('an audit log that is being written is read up to its last whole line', async () => {
  const file = path.join(temporaryFolder('kindred-audit-'), 'audit.log');
  expect(await readAuditLog(file)).toEqual([]);
  writeFileSync(file, '{"auditID":"1"}\n{"auditID":"2"}\n{"audit');
  expect((await readAuditLog(file)).map(({ auditID }) => auditID)).toEqual(['1', '2']);
});

describe('waitFor', () => {
  test('gives what the check gives in the end, zero and empty text too', async () => {
    const seen = [undefined, false, null, 0];
    await expect(waitFor(() => seen.shift(), { interval: 1 })).resolves.toBe(0);
    await expect(waitFor(() => '')).resolves.toBe('');
  });

  test('at the deadline says what it waited for and what it saw last', async () => {
    const failing = waitFor(() => Promise.reject(new Error('connection refused')), {
      timeout: 20,
      interval: 5,
      describe: 'the Deployment',
    });
    await expect(failing).rejects.toThrow('waited 20 ms for the Deployment; last seen: an error: connection refused');
    await expect(waitFor(() => null, { timeout: 1 })).rejects.toThrow('the check to succeed; last seen: null');
  });

  test('told when to look, it looks once for each time, and for what came during a look; never told, it gives up', async () => {
    const changes = new EventEmitter();
    const nextLook = () => once(changes, 'change');
    let looks = 0;
    const look = async (): Promise<boolean> => {
      looks += 1;
      if (looks === 1) changes.emit('change');
      await Promise.resolve();
      return looks === 2;
    };
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    const before = timers();
    await expect(waitFor(look, { nextLook })).resolves.toBe(true);
    expect(timers()).toBe(before);
    await expect(waitFor(() => false, { timeout: 20, nextLook })).rejects.toThrow('waited 20 ms');
  });
});

test('durations and sizes read well', () => {
  expect([40, 9_949, 48_200, 151_000].map(duration)).toEqual(['0.0 s', '9.9 s', '48 s', '2 min 31 s']);
  expect([700, 87_400_000, 12_000_000_000].map(size)).toEqual(['1 KB', '87 MB', '12 GB']);
});
