import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { ResourceType } from '../../../../constructs/core/resource-type';
import type { ApiClient } from '../../../../operator/src/client/api-client';

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
 * @throws Error at the deadline, with what the check gave or threw last
 */
export async function whenChanged<T>(
  client: ApiClient,
  options: WhenChangedOptions,
  check: () => Promise<T | undefined>,
): Promise<T> {
  const stop = new AbortController();
  const changes = new EventEmitter();
  const deadline = setTimeout(() => {
    stop.abort();
    changes.emit('change');
  }, options.timeout);
  const watches = options.watched.map((watched) => watch(client, watched, options.timeout, stop.signal, changes));
  try {
    for (;;) {
      const next = once(changes, 'change');
      let last: unknown;
      try {
        const value = await check();
        if (value !== undefined) return value;
      } catch (error) {
        last = error;
      }
      if (stop.signal.aborted) {
        const seen = last instanceof Error ? last.message : inspect(last);
        throw new Error(`waited ${String(options.timeout)} ms for ${options.describe}; last seen: ${seen}`, {
          cause: last,
        });
      }
      await next;
    }
  } finally {
    clearTimeout(deadline);
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
