import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { ResourceType } from '../../../../constructs/kube/resource-type';
import { waitFor } from '../../../../testing/control-plane';
import type { ApiClient } from '../../../../operator/client/api-client';

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
