import { childTypes, type AnyKind } from '../../constructs/kind/kind';
import { typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import { ObjectCache } from '../../operator/informer/object-cache';
import { Reflector } from '../../operator/informer/reflector';
import type { ApiClient } from '../../operator/client/api-client';
import { rowOf, type Row } from './row';

/** Changes that come close together are shown once, in milliseconds. */
const settleMs = 100;

/** Watches every object of some kinds, and their children. */
export class Board {
  private readonly caches = new Map<string, ObjectCache>();
  private readonly reflectors: Reflector[] = [];
  private readonly listeners = new Set<(rows: readonly Row[]) => void>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    client: ApiClient,
    private readonly kinds: readonly AnyKind[],
  ) {
    for (const type of kinds.flatMap((kind) => [kind.type, ...childTypes(kind)])) this.watch(client, type);
  }

  /** Starts to watch; resolves when everything that stands is known. */
  async start(): Promise<void> {
    for (const reflector of this.reflectors) reflector.start();
    await Promise.all(this.reflectors.map((reflector) => reflector.synced()));
  }

  /** Calls back with every change; the answer ends that. */
  onChange(listener: (rows: readonly Row[]) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The objects by kind, then by namespace and name. */
  rows(): readonly Row[] {
    return this.kinds.flatMap((kind) =>
      this.cacheOf(kind.type)
        .list()
        .map(({ object }) => rowOf(object, this.childrenOf(kind, object.metadata.uid ?? '')))
        .sort((a, b) => (a.object < b.object ? -1 : 1)),
    );
  }

  async stop(): Promise<void> {
    clearTimeout(this.timer);
    this.listeners.clear();
    await Promise.all(this.reflectors.map((reflector) => reflector.stop()));
  }

  private childrenOf(kind: AnyKind, uid: string) {
    return childTypes(kind).flatMap((type) =>
      this.cacheOf(type)
        .byOwner(uid)
        .map(({ object }) => object),
    );
  }

  private watch(client: ApiClient, type: ResourceType): void {
    if (this.caches.has(typeKey(type))) return;
    const cache = new ObjectCache(type);
    cache.onEvent(() => this.changed());
    this.caches.set(typeKey(type), cache);
    this.reflectors.push(new Reflector({ client, type, cache }));
  }

  private changed(): void {
    if (this.listeners.size === 0) return;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const rows = this.rows();
      for (const listener of this.listeners) listener(rows);
    }, settleMs);
  }

  private cacheOf(type: ResourceType): ObjectCache {
    const cache = this.caches.get(typeKey(type));
    if (cache === undefined) throw new TypeError(`the board does not watch ${typeKey(type)}`);
    return cache;
  }
}
