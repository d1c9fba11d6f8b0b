import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ObjectRef } from '../client/api-client';
import type { ObjectCache } from './object-cache';
import type { CacheEntry, CacheHandler } from './projection';

/** What a reconcile sees of the cache of a type, whether that covers the cluster or a few namespaces. */
export type CacheView = Pick<
  ObjectCache,
  | 'type'
  | 'size'
  | 'get'
  | 'list'
  | 'byOwner'
  | 'byIndex'
  | 'addEventHandler'
  | 'addObserver'
  | 'trackWrite'
  | 'observeWrite'
  | 'reproject'
>;

/** Several caches of one type, one per namespace, as one view. Each has its own reflector and version. */
export class MultiNamespaceCache implements CacheView {
  constructor(
    readonly type: ResourceType,
    private readonly caches: ReadonlyMap<string, ObjectCache>,
  ) {}

  get size(): number {
    return this.all().reduce((sum, cache) => sum + cache.size, 0);
  }

  get(ref: ObjectRef): CacheEntry | undefined {
    return this.caches.get(ref.namespace ?? '')?.get(ref);
  }

  list(namespace?: string): readonly CacheEntry[] {
    if (namespace !== undefined) return this.caches.get(namespace)?.list() ?? [];
    return this.all().flatMap((cache) => cache.list());
  }

  byOwner(uid: string): readonly CacheEntry[] {
    return this.all().flatMap((cache) => cache.byOwner(uid));
  }

  byIndex(name: string, value: string): readonly CacheEntry[] {
    return this.all().flatMap((cache) => cache.byIndex(name, value));
  }

  addEventHandler(handler: CacheHandler): () => void {
    return allOf(this.all().map((cache) => cache.addEventHandler(handler)));
  }

  addObserver(handler: CacheHandler): () => void {
    return allOf(this.all().map((cache) => cache.addObserver(handler)));
  }

  /**
   * @throws RangeError for an object of a namespace that is not watched: no watch would ever report its write
   */
  async trackWrite(ref: ObjectRef, send: () => Promise<KubeObject>): Promise<KubeObject> {
    return this.of(ref).trackWrite(ref, send);
  }

  /** @throws RangeError, as `trackWrite` */
  observeWrite(object: KubeObject): void {
    this.of(object.metadata).observeWrite(object);
  }

  reproject(ref: ObjectRef, project: (entry: CacheEntry) => CacheEntry): void {
    this.caches.get(ref.namespace ?? '')?.reproject(ref, project);
  }

  private of({ namespace = '' }: ObjectRef): ObjectCache {
    const cache = this.caches.get(namespace);
    if (cache !== undefined) return cache;
    throw new RangeError(
      `namespace "${namespace}" is not among those that are watched: ${[...this.caches.keys()].join(', ')}`,
    );
  }

  private all(): readonly ObjectCache[] {
    return [...this.caches.values()];
  }
}

function allOf(ends: readonly (() => void)[]): () => void {
  return () => {
    for (const end of ends) end();
  };
}
