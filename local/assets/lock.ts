import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, LocalControlPlaneError, undefinedIfMissing } from './errors';
import { duration, type Progress } from './progress';
import { isAlive, ownIdentity, parseIdentity } from './process';

/** How to wait for a lock. */
export interface LockOptions {
  /** What the lock is for, for messages: "kube-apiserver v1.36.3". */
  readonly purpose: string;
  readonly onProgress: Progress;
  /** How long to wait for a live owner, in milliseconds. @default 1_800_000 (30 minutes) */
  readonly timeoutMs?: number;
  /** How often to check, in milliseconds. @default 250 */
  readonly pollMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs `work` while this process owns the lock file.
 *
 * Guarantees: the lock has at most one owner; a lock whose owner died is taken over; the lock is released
 * however `work` ends.
 * Caveat: an owner on another host cannot be checked and counts as alive until the timeout.
 *
 * @throws LocalControlPlaneError when a live owner keeps the lock beyond the timeout
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
    if (held === undefined) continue; // released in between
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

/**
 * Creates the file with its content in one step, by a link to a complete file, so that no reader sees it
 * empty.
 */
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

/** A takeover file that is older than this was left by a process that died. */
const abandonedAfterMs = 10_000;

/**
 * Removes a lock that still contains `content`, whose owner is dead. Two waiters may find the same dead lock,
 * and the slower one would then remove the faster one's new lock. So the removal is guarded by a lock of its
 * own, the takeover file.
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
  // It is not ours only when a user removed it; then it may have another owner by now.
  if ((await readIfAny(file)) === mine) await unlink(file);
}

async function readIfAny(file: string): Promise<string | undefined> {
  return readFile(file, 'utf8').catch(undefinedIfMissing);
}
