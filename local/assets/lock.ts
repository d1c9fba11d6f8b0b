import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, LocalControlPlaneError } from './errors';
import { duration, type Progress } from './progress';
import { isAlive, ownIdentity, parseIdentity } from './process';

/** How to wait for a lock. */
export interface LockOptions {
  /** What the lock is for, for messages: "kube-apiserver v1.36.3". */
  readonly purpose: string;
  readonly onProgress: Progress;
  /** How long to wait for a living owner, in milliseconds. @default 1_800_000 (30 minutes) */
  readonly timeoutMs?: number;
  /** How often to look, in milliseconds. @default 250 */
  readonly pollMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** A right to remove a dead lock that is not used for this long was left by a process that died too. */
const abandonedAfterMs = 10_000;

/**
 * Runs `work` while holding the lock file, which one process holds at a time.
 *
 * Guarantees: at most one holder; a lock whose owner died is taken over; the lock is released however `work` ends.
 * Caveat: an owner on another host cannot be checked and counts as alive until the timeout.
 *
 * @throws LocalControlPlaneError when a living owner keeps the lock beyond the timeout
 */
export async function withLock<T>(file: string, options: LockOptions, work: () => Promise<T>): Promise<T> {
  const mine = await acquire(file, options);
  try {
    return await work();
  } finally {
    await release(file, mine);
  }
}

async function acquire(file: string, options: LockOptions): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  const mine = JSON.stringify({ ...ownIdentity(), nonce: randomUUID() });
  const started = Date.now();
  let announced = false;
  for (;;) {
    if (await tryCreate(file, mine)) return mine;
    const held = await readIfAny(file);
    if (held === undefined) continue; // released between the two looks
    const owner = parseIdentity(held);
    if (owner === undefined || !isAlive(owner)) {
      if (await removeDead(file, held)) {
        options.onProgress(`${options.purpose}: taking over a lock whose owner died (${file})`);
        continue;
      }
    } else if (!announced) {
      announced = true;
      options.onProgress(`${options.purpose}: waiting for process ${owner.pid}, which is at it already`);
    }
    const waited = Date.now() - started;
    if (waited > (options.timeoutMs ?? 1_800_000)) throw tooLong(file, options, owner?.pid, waited);
    await delay(options.pollMs ?? 250, undefined, { signal: options.signal });
  }
}

function tooLong(file: string, options: LockOptions, pid: number | undefined, waited: number): Error {
  return new LocalControlPlaneError(
    `${options.purpose}: waited ${duration(waited)} for the lock ${file}, held by process ${pid ?? 'unknown'}. ` +
      `If that process hangs, end it; if it lives on another host and is gone, remove the file.`,
  );
}

/** Creates the file with its content in one step: a link to a finished file, so no reader sees it empty. */
async function tryCreate(file: string, content: string): Promise<boolean> {
  const draft = `${file}.${randomUUID()}`;
  await writeFile(draft, content, { flag: 'wx' });
  try {
    await link(draft, file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await unlink(draft);
  }
}

/**
 * Removes a lock that still holds `content`, whose owner is dead. Two waiters may find the same dead lock; were both to
 * remove what they find, the slower one would remove the faster one's fresh lock. So the right to remove is a lock too.
 */
async function removeDead(file: string, content: string): Promise<boolean> {
  const right = `${file}.takeover`;
  if (!(await tryCreate(right, content))) {
    const made = await stat(right).catch(undefinedIfMissing);
    if (made !== undefined && Date.now() - made.mtimeMs > abandonedAfterMs)
      await unlink(right).catch(undefinedIfMissing);
    return false;
  }
  try {
    if ((await readIfAny(file)) !== content) return false;
    await unlink(file);
    return true;
  } finally {
    await unlink(right).catch(undefinedIfMissing);
  }
}

async function release(file: string, mine: string): Promise<void> {
  // Not ours any more only when a person removed it; then it may be another's by now.
  if ((await readIfAny(file)) === mine) await unlink(file);
}

async function readIfAny(file: string): Promise<string | undefined> {
  return readFile(file, 'utf8').catch(undefinedIfMissing);
}

function undefinedIfMissing(error: unknown): undefined {
  if (codeOf(error) === 'ENOENT') return undefined;
  throw error;
}
