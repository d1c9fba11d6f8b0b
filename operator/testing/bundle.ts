import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const root = join(__dirname, '..', '..');
const bundle = join(root, 'dist', 'operator.cjs');
const lock = join(root, 'dist', 'operator.lock');
const lockPatienceMs = 120_000;

/** What the bundle is made of; `node_modules` changes with the lock file only. */
const sources = ['operator/src', 'constructs', 'provision', 'scripts/build.mjs', 'scripts/bundle', 'package-lock.json'];

/**
 * The operator as it is shipped: one bundled file. Built when it is missing or older than its sources; of several processes that ask,
 * one builds and the others wait.
 *
 * @returns its path
 * @throws Error with esbuild's words when it cannot be built
 */
export async function operatorBundle(): Promise<string> {
  await acquire();
  try {
    if (await isStale()) await promisify(execFile)(process.execPath, ['scripts/build.mjs'], { cwd: root });
    return bundle;
  } finally {
    await rm(lock, { force: true });
  }
}

async function isStale(): Promise<boolean> {
  const built = await modified(bundle);
  const times = await Promise.all(sources.map((source) => newest(join(root, source))));
  return built === undefined || Math.max(...times) >= built;
}

async function newest(path: string): Promise<number> {
  const found = await stat(path);
  if (!found.isDirectory()) return found.mtimeMs;
  const entries = await readdir(path);
  const inside = entries.filter((name) => name !== 'node_modules').map((name) => newest(join(path, name)));
  // The folder itself tells of files that were removed.
  return Math.max(found.mtimeMs, ...(await Promise.all(inside)));
}

async function modified(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  );
}

async function acquire(): Promise<void> {
  await mkdir(join(root, 'dist'), { recursive: true });
  const deadline = Date.now() + lockPatienceMs;
  while (!(await tryLock())) {
    if (await ownerIsDead()) await rm(lock, { force: true });
    else if (Date.now() > deadline) throw new Error(`${lock} is held by a process that builds; remove it if none does`);
    else await delay(50);
  }
}

async function tryLock(): Promise<boolean> {
  return writeFile(lock, String(process.pid), { flag: 'wx' }).then(
    () => true,
    () => false,
  );
}

async function ownerIsDead(): Promise<boolean> {
  const pid = Number(await readFile(lock, 'utf8').catch(() => ''));
  if (!Number.isInteger(pid) || pid === 0) return false; // about to be written, or released just now
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}
