import { setTimeout as delay } from 'node:timers/promises';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { Reflector } from './cache/reflector';
import { compareResourceVersions } from './cache/resource-version';
import type { ApiClient } from './client/api-client';
import { ApiError, TransportError } from './client/errors';

/** A cache that may have been left behind. */
export interface CatchUpOptions {
  readonly client: Pick<ApiClient, 'list'>;
  readonly type: ResourceType;
  /** @default all namespaces */
  readonly namespace?: string | undefined;
  readonly reflector: Pick<Reflector, 'state' | 'relist'>;
  readonly signal: AbortSignal;
  /** How long an open watch may take to come to where the server is, in milliseconds. @default 1000 */
  readonly waitMs?: number;
}

const POLL_MS = 25;

/**
 * Resolves when a cache holds all that the server knew when this was called. The server is asked for its version by a list of one object; a watch
 * on which something happens comes to it by itself. One on which nothing happens would be told by a bookmark, of which there is one a minute:
 * instead, all objects are listed anew.
 *
 * @returns whether it took a list
 * @throws ReflectorStopped; the signal's reason
 */
export async function catchUp(options: CatchUpOptions): Promise<boolean> {
  if (await reachesServer(options)) return false;
  options.signal.throwIfAborted();
  await options.reflector.relist();
  return true;
}

async function reachesServer(options: CatchUpOptions): Promise<boolean> {
  const { reflector, signal, waitMs = 1_000 } = options;
  const before = reflector.state().resourceVersion;
  const version = await serverVersion(options);
  // A server that is behind what the cache knew has been set back, and then no version of the cache says anything.
  if (version === undefined || compareResourceVersions(before, version) > 0) return false;
  const deadline = performance.now() + waitMs;
  for (;;) {
    const { resourceVersion, watching } = reflector.state();
    if (compareResourceVersions(resourceVersion, version) >= 0) return true;
    if (!watching || performance.now() >= deadline) return false;
    await delay(POLL_MS, undefined, { signal });
  }
}

/** The version that the server is at, as a consistent read; undefined when it does not say: the list will tell why. */
async function serverVersion({ client, type, namespace, signal }: CatchUpOptions): Promise<string | undefined> {
  const where = namespace === undefined ? {} : { namespace };
  try {
    const page = await client.list(type, { ...where, limit: 1, metadataOnly: true, signal, timeoutMs: 5_000 });
    return page.resourceVersion;
  } catch (error) {
    if (error instanceof ApiError || error instanceof TransportError) return undefined;
    throw error;
  }
}
