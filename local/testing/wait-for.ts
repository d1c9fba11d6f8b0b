import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import { LocalControlPlaneError, messageOf } from '../errors';

/** How to wait. */
export interface WaitOptions {
  /** Milliseconds until it gives up. @default 25_000 */
  readonly timeout?: number;
  /** What is waited for, for the error: "the Deployment to be available". @default "the check to succeed" */
  readonly describe?: string;
  /** Milliseconds between two looks. @default 50 */
  readonly interval?: number;
  /** Called before each look; what it gives resolves when it is time for the next one. @default the interval */
  readonly nextLook?: () => Promise<unknown>;
}

/** What a check that has not succeeded yet gives. */
type NotYet = false | null | undefined;

/**
 * Repeats a check until it gives something other than false, null or undefined, and gives that. A check that throws is
 * repeated too.
 *
 * @throws LocalControlPlaneError at the deadline, with what was last seen
 */
export async function waitFor<T>(
  check: () => T | NotYet | Promise<T | NotYet>,
  options: WaitOptions = {},
): Promise<Exclude<T, NotYet>> {
  const timeout = options.timeout ?? 25_000;
  const deadline = Date.now() + timeout;
  for (;;) {
    const next = options.nextLook?.();
    let seen: string;
    let cause: unknown;
    try {
      const value = await check();
      if (value !== false && value !== null && value !== undefined) return value as Exclude<T, NotYet>;
      seen = inspect(value);
    } catch (error) {
      cause = error;
      seen = `an error: ${messageOf(error)}`;
    }
    if (Date.now() >= deadline) {
      const what = options.describe ?? 'the check to succeed';
      throw new LocalControlPlaneError(`waited ${timeout} ms for ${what}; last seen: ${seen}`, { cause });
    }
    if (next === undefined) await delay(options.interval ?? 50);
    else await untilDeadline(next, deadline);
  }
}

/** Waits for a promise until a time, and leaves no timer behind. */
async function untilDeadline(promise: Promise<unknown>, deadline: number): Promise<void> {
  const timer = new AbortController();
  try {
    await Promise.race([promise, delay(deadline - Date.now(), undefined, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}
