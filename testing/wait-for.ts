import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { ResourceType } from '../constructs/kube/resource-type';
import { LocalControlPlaneError, messageOf } from '../local/assets/errors';
import type { ApiClient } from '../operator/client/api-client';

/** How to wait. */
export interface WaitOptions {
  /** Milliseconds until it gives up. @default 25_000 */
  readonly timeout?: number;
  /**
   * What the caller waits for, for the error: "the Deployment to be available".
   * @default "the check to succeed"
   */
  readonly describe?: string;
  /** Milliseconds between two checks. @default 50 */
  readonly interval?: number;
  /** Called before each check; the next check follows when its result resolves. @default the interval */
  readonly nextLook?: () => Promise<unknown>;
}

/** The result of a check that has not succeeded yet. */
type NotYet = false | null | undefined;

/**
 * Repeats a check until it returns something other than false, null or undefined, and returns that. A check
 * that throws is repeated too.
 *
 * @throws LocalControlPlaneError at the deadline, with the last result
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

/** Waits for a promise until a deadline, and leaves no timer behind. */
async function untilDeadline(promise: Promise<unknown>, deadline: number): Promise<void> {
  const timer = new AbortController();
  try {
    await Promise.race([promise, delay(deadline - Date.now(), undefined, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}

/** What to watch: the objects of a type, those of a namespace only, or a single one. */
export interface Watched {
  readonly type: ResourceType;
  readonly namespace?: string;
  readonly name?: string;
}

/** How to wait. */
export interface WhenChangedOptions {
  readonly watched: readonly Watched[];
  /** What is waited for, for the error. */
  readonly describe: string;
  /** Milliseconds until it gives up. */
  readonly timeout: number;
}

/**
 * Runs a check at first and after each change of the watched objects, until it gives something, and gives that. A check that throws has
 * not succeeded yet. The check must depend on the watched objects alone.
 *
 * @throws LocalControlPlaneError at the deadline, with what the check gave or threw last
 */
export async function whenChanged<T>(
  client: ApiClient,
  options: WhenChangedOptions,
  check: () => Promise<T | undefined>,
): Promise<T> {
  const { watched, describe, timeout } = options;
  const stop = new AbortController();
  const changes = new EventEmitter();
  const watches = watched.map((each) => watch(client, each, timeout, stop.signal, changes));
  try {
    return await waitFor(check, { describe, timeout, nextLook: () => once(changes, 'change') });
  } finally {
    stop.abort();
    await Promise.all(watches);
  }
}

/** Tells of the beginning of a watch and of each event, until it is stopped. A watch that ends or fails, as at a restart of the server, begins again. */
async function watch(
  client: ApiClient,
  { type, namespace, name }: Watched,
  timeout: number,
  signal: AbortSignal,
  changes: EventEmitter,
): Promise<void> {
  const options = {
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
    timeoutSeconds: Math.ceil(timeout / 1000),
    idleTimeoutMs: timeout,
    signal,
    // What changed between a look and the beginning of the watch is no event of the watch.
    onOpen: () => changes.emit('change'),
  };
  while (!signal.aborted) {
    try {
      for await (const event of client.watch(type, options)) if (event.type !== 'BOOKMARK') changes.emit('change');
    } catch {
      // What is wrong shows in the check's own requests, whose error is told at the deadline.
      changes.emit('change');
      await delay(100);
    }
  }
}
