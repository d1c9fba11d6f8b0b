import { createServer, type AddressInfo } from 'node:net';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startControlPlane } from '../../../local';
import { kubectl } from '../../../testing/kubectl';
import { temporaryFolder } from '../../support/temporary-folder';

const quiet = { onProgress: () => undefined, components: 'api' } as const;

test('two run side by side and know nothing of each other; each removes its folder', async () => {
  const [one, two] = await Promise.all([startControlPlane(quiet), startControlPlane(quiet)]);
  try {
    expect(one.url).not.toBe(two.url);
    expect(await kubectl(one, ['create', 'namespace', 'only-here'])).toMatchObject({ code: 0 });
    expect((await kubectl(two, ['get', 'namespace', 'only-here'])).stderr).toContain('NotFound');
    // Each has an authority of its own, so one's administrator is nobody to the other.
    const stranger = await kubectl(one, ['get', 'ns', '--server', two.url, '--insecure-skip-tls-verify=true']);
    expect(stranger.code).not.toBe(0);
  } finally {
    await Promise.all([one.stop(), one.stop(), two.stop()]);
  }
  expect([existsSync(one.dataDir), existsSync(two.dataDir)]).toEqual([false, false]);
  await expect(one.faults.startApiServer()).rejects.toThrow('has been stopped');
  expect(existsSync(one.dataDir)).toBe(false);
}, 60_000);

test('a port that was asked for is used', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const dataDir = path.join(temporaryFolder('kindred-test-'), 'data');
  await expect(startControlPlane({ ...quiet, port, dataDir })).rejects.toThrow(`port ${port} on 127.0.0.1 is taken`);
  expect(existsSync(dataDir)).toBe(false);

  await new Promise((resolve) => server.close(resolve));
  const plane = await startControlPlane({ ...quiet, port, dataDir });
  expect(plane.url).toBe(`https://127.0.0.1:${port}`);
  expect(plane.dataDir).toBe(dataDir);
  await plane.stop();
}, 60_000);

test('a data folder with something in it is left alone', async () => {
  const dataDir = temporaryFolder('kindred-test-');
  writeFileSync(path.join(dataDir, 'precious'), '');
  await expect(startControlPlane({ ...quiet, dataDir })).rejects.toThrow('is not empty');
  expect(readdirSync(dataDir)).toEqual(['precious']);
});

test('an API server that cannot start is named, with the last lines of its log, and nothing is left', async () => {
  const dataDir = path.join(temporaryFolder('kindred-test-'), 'data');
  const failing = startControlPlane({ ...quiet, dataDir, extraApiServerArgs: ['--no-such-flag'] });
  await expect(failing).rejects.toThrow(/kube-apiserver exited with code 1[^]*unknown flag: --no-such-flag/);
  expect(existsSync(dataDir)).toBe(false);
}, 60_000);

test('a start can be called off', async () => {
  const dataDir = path.join(temporaryFolder('kindred-test-'), 'data');
  const abort = new AbortController();
  const starting = startControlPlane({ ...quiet, dataDir, signal: abort.signal });
  setTimeout(() => abort.abort(new Error('changed my mind')), 300);
  await expect(starting).rejects.toThrow();
  expect(existsSync(dataDir)).toBe(false);
}, 60_000);
