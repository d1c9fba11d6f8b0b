import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { withLock } from '../../../local/assets/lock';
import { ownIdentity } from '../../../local/assets/process';
import { temporaryFolder } from '../../support/temporary-folder';

let folder: string;
let file: string;
let lines: string[];
const options = (more = {}) => ({
  purpose: 'etcd v1',
  onProgress: (line: string) => lines.push(line),
  pollMs: 5,
  ...more,
});

beforeEach(() => {
  folder = temporaryFolder('kindred-lock-');
  file = path.join(folder, 'deep', 'lock');
  lines = [];
});

test('one holds it at a time, and nothing stays behind', async () => {
  let inside = 0;
  let most = 0;
  const work = async (): Promise<void> => {
    most = Math.max(most, (inside += 1));
    await new Promise((resolve) => setTimeout(resolve, 5));
    inside -= 1;
  };
  await Promise.all(Array.from({ length: 8 }, () => withLock(file, options(), work)));
  expect(most).toBe(1);
  expect(readdirSync(path.dirname(file))).toEqual([]);
});

test('it is released when the work fails', async () => {
  await expect(withLock(file, options(), () => Promise.reject(new Error('no luck')))).rejects.toThrow('no luck');
  expect(existsSync(file)).toBe(false);
});

test('the lock of another living process is waited for, which is said once', async () => {
  const released = path.join(folder, 'released');
  const script = `
    const { writeFileSync } = require('node:fs');
    const { withLock } = require(${JSON.stringify(path.resolve(__dirname, '../../../local/assets/lock'))});
    withLock(process.argv[1], { purpose: 'it', onProgress() {} }, async () => {
      console.log('held');
      await new Promise((resolve) => process.stdin.once('end', resolve).resume());
      writeFileSync(process.argv[2], '');
    });`;
  const other = spawn(process.execPath, ['--require', 'tsx/cjs', '-e', script, file, released], {
    cwd: path.resolve(__dirname, '../../..'),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => other.stdout.once('data', resolve));
  const onProgress = (line: string): void => {
    lines.push(line);
    // Not at once: it would be said a second time at one of the next looks.
    setTimeout(() => other.stdin.end(), 200);
  };
  expect(await withLock(file, options({ onProgress }), () => Promise.resolve(existsSync(released)))).toBe(true);
  expect(lines).toEqual([`etcd v1: waiting for process ${String(other.pid)}, which is at it already`]);
}, 20_000);

describe('the lock of a dead owner', () => {
  const { pid: deadPid } = spawnSync(process.execPath, ['-e', '']);

  test.each([
    ['a process that ended', { ...ownIdentity(), pid: deadPid }],
    ['a process whose pid another has by now', { ...ownIdentity(), started: 'long ago' }],
  ])('%s, is taken over', async (_name, owner) => {
    await withLock(file, options(), () => Promise.resolve());
    writeFileSync(file, JSON.stringify(owner));
    await expect(withLock(file, options(), () => Promise.resolve('done'))).resolves.toBe('done');
    expect(lines).toEqual([expect.stringContaining('taking over a lock whose owner died')]);
  });

  test('is taken over by one of many', async () => {
    await withLock(file, options(), () => Promise.resolve());
    writeFileSync(file, JSON.stringify({ ...ownIdentity(), pid: deadPid }));
    let inside = 0;
    await Promise.all(
      Array.from({ length: 8 }, () =>
        withLock(file, options(), async () => {
          expect((inside += 1)).toBe(1);
          await new Promise((resolve) => setTimeout(resolve, 3));
          inside -= 1;
        }),
      ),
    );
    expect(lines.filter((line) => line.includes('taking over'))).toHaveLength(1);
  });
});

test('nobody waits for ever: the error names the owner and the file', async () => {
  const owner = { ...ownIdentity(), nonce: 'other' };
  await withLock(file, options(), () => Promise.resolve());
  writeFileSync(file, JSON.stringify(owner));
  await expect(withLock(file, options({ timeoutMs: 30 }), () => Promise.resolve())).rejects.toThrow(
    new RegExp(`waited .* for the lock ${file}, held by process ${process.pid}`),
  );
  expect(readFileSync(file, 'utf8')).toBe(JSON.stringify(owner));
});

test('an owner on another host is not taken for dead', async () => {
  await withLock(file, options(), () => Promise.resolve());
  writeFileSync(file, JSON.stringify({ host: `not-${hostname()}`, pid: 1, started: 'x' }));
  await expect(withLock(file, options({ timeoutMs: 30 }), () => Promise.resolve())).rejects.toThrow('waited');
});
