import type { CacheEvent } from '../../../operator/informer/projection';
import { ObjectCache } from '../../../operator/informer/object-cache';
import { Reflector } from '../../../operator/informer/reflector';
import type { ReflectorOptions } from '../../../operator/informer/reflector-options';
import type { ApiClient } from '../../../operator/client/api-client';
import { staticAccess } from '../../../operator/client/cluster-access';
import { createApiClient } from '../../../operator/client/http-api-client';
import { eventually } from '../support/eventually';
import { CONFIG_MAPS, FakeCluster } from '../support/fake-cluster';

/** A reflector of a fake cluster, with short times. */
export interface Harness {
  readonly cluster: FakeCluster;
  readonly client: ApiClient;
  readonly cache: ObjectCache;
  readonly reflector: Reflector;
  readonly events: CacheEvent[];
  readonly errors: unknown[];
  /** Resolves when the cache holds exactly what the cluster does. */
  readonly caughtUp: () => Promise<void>;
}

/** Runs a test against a started reflector and cleans up after it. */
export async function withReflector(
  test: (harness: Harness) => Promise<void>,
  options: Partial<ReflectorOptions> & { readonly prepare?: (cluster: FakeCluster) => void } = {},
): Promise<void> {
  const cluster = new FakeCluster();
  options.prepare?.(cluster);
  const client = createApiClient(staticAccess(await cluster.server.listen()), {
    retry: { maxAttempts: 3, maxWaitMs: 5000 },
  });
  const cache = new ObjectCache(CONFIG_MAPS);
  const events: CacheEvent[] = [];
  const errors: unknown[] = [];
  cache.addEventHandler((event) => events.push(event));
  const reflector = new Reflector({
    client,
    type: CONFIG_MAPS,
    cache,
    // No test of silence may meet it by being slow.
    idleTimeoutMs: 60_000,
    minWatchMs: 0,
    backoff: { initialMs: 5, maxMs: 40 },
    onError: (error) => errors.push(error),
    ...options,
  });
  try {
    reflector.start();
    await test({
      cluster,
      client,
      cache,
      reflector,
      events,
      errors,
      caughtUp: () => eventually(() => expect(stateOf(cache)).toEqual(cluster.state())),
    });
    expect(cluster.server.failures).toEqual([]);
  } finally {
    await reflector.stop();
    await client.close();
    await cluster.server.close();
  }
}

/** Versions by `namespace/name`. */
export function stateOf(cache: ObjectCache): Record<string, string | undefined> {
  return Object.fromEntries(
    cache
      .list()
      .map(({ object: { metadata } }) => [`${metadata.namespace}/${metadata.name}`, metadata.resourceVersion]),
  );
}

/** Prepares a cluster that holds `count` objects, `seed-0` and so on, of versions 101 and up. */
export function seed(count: number): (cluster: FakeCluster) => void {
  return (cluster) => {
    for (let index = 0; index < count; index++) cluster.put(`seed-${index}`);
  };
}
