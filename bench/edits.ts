import { HelloApp } from '../constructs/kinds';
import type { KubeObject } from '../constructs/kube/kube-object';
import { owned, type ResourceType } from '../constructs/kube/resource-type';
import type { ApiClient } from '../operator/client/api-client';
import type { Edits } from './results';

interface Observed extends KubeObject {
  readonly status?: { readonly observedGeneration?: number };
}

/**
 * Edits the image of each object twice, one edit at a time, and measures the time until a watch shows the
 * changed Deployment. The next edit waits until the operator has also written the status, so that it is idle.
 */
export async function measureEdits(
  client: ApiClient,
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<Edits> {
  const { namespace = '' } = objects[0]?.metadata ?? {};
  const watch = (type: ResourceType): Promise<WatchObserver> => WatchObserver.start(client, type, namespace, signal);
  const [deployments, apps] = await Promise.all([watch(owned.Deployment), watch(HelloApp.type)]);
  const edits = { first: [] as number[], later: [] as number[], request: [] as number[] };
  const edit = async (name: string, image: string): Promise<number> => {
    const changed = deployments.waitFor(name, (object) => imageOf(object) === image);
    const began = performance.now();
    const options = { type: 'merge', fieldManager: 'bench' } as const;
    const { metadata } = await client.patch(HelloApp.type, { namespace, name }, { spec: { image } }, options);
    edits.request.push(performance.now() - began);
    const seen = (await changed) - began;
    await apps.waitFor(name, (object) => (object as Observed).status?.observedGeneration === metadata.generation);
    return seen;
  };
  try {
    for (const turn of ['first', 'later'] as const) {
      for (const { metadata } of objects) {
        edits[turn].push(await edit(metadata.name, `registry.example.com/${turn}:${metadata.name}`));
      }
    }
  } finally {
    await Promise.all([deployments.stop(), apps.stop()]);
  }
  return edits;
}

interface Podded {
  readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
}

/** The image of a Deployment's one container. */
export function imageOf({ spec }: KubeObject): string | undefined {
  return (spec as Podded).template.spec.containers[0]?.image;
}

interface Observation {
  readonly object: KubeObject;
  readonly at: number;
}

interface Waiter {
  readonly name: string;
  readonly wanted: (object: KubeObject) => boolean;
  readonly resolve: (at: number) => void;
  readonly reject: (error: Error) => void;
}

/** Waits until a watch shows an object in a wanted state. */
export class WatchObserver {
  private readonly latest = new Map<string, Observation>();
  private readonly waiters = new Set<Waiter>();
  private readonly end = new AbortController();
  private failure: Error | undefined;
  private done: Promise<void> = Promise.resolve();

  private constructor() {}

  /** Watches a namespace from now on. */
  static async start(
    client: ApiClient,
    type: ResourceType,
    namespace: string,
    signal: AbortSignal,
  ): Promise<WatchObserver> {
    const sightings = new WatchObserver();
    const { resourceVersion } = await client.list(type, { namespace, limit: 1 });
    await new Promise<void>((onOpen, reject) => {
      const events = client.watch(type, {
        ...{ namespace, resourceVersion, onOpen, timeoutSeconds: 3600, idleTimeoutMs: 3_600_000 },
        signal: AbortSignal.any([signal, sightings.end.signal]),
      });
      sightings.done = sightings.follow(events).catch((cause: unknown) => {
        const error = new Error(`the watch of ${type.plural} has ended`, { cause });
        sightings.fail(error);
        reject(error);
      });
    });
    return sightings;
  }

  /**
   * When the watch first showed the named object in the wanted state, by `performance.now()`.
   *
   * @throws the error that ended the watch
   */
  waitFor(name: string, wanted: Waiter['wanted']): Promise<number> {
    const latest = this.latest.get(name);
    if (latest !== undefined && wanted(latest.object)) return Promise.resolve(latest.at);
    if (this.failure !== undefined) return Promise.reject(this.failure);
    const sighting = new Promise<number>((resolve, reject) => {
      this.waiters.add({ name, wanted, resolve, reject });
    });
    sighting.catch(() => undefined); // callers that await it get the error; their request may have failed before
    return sighting;
  }

  /** Ends the watch. */
  async stop(): Promise<void> {
    this.end.abort();
    await this.done;
  }

  private async follow(events: ReturnType<ApiClient['watch']>): Promise<void> {
    for await (const { type, object } of events) {
      if (type === 'BOOKMARK') continue;
      const at = performance.now();
      this.latest.set(object.metadata.name, { object, at });
      for (const waiter of this.waiters) {
        if (waiter.name !== object.metadata.name || !waiter.wanted(object)) continue;
        this.waiters.delete(waiter);
        waiter.resolve(at);
      }
    }
    throw new Error('the server has ended it');
  }

  private fail(error: Error): void {
    this.failure = error;
    for (const { reject } of this.waiters) reject(error);
    this.waiters.clear();
  }
}
