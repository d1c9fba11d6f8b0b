import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ObjectCache } from './object-cache';
import type { CacheEntry } from './projection';

/** Marks the bookmark that ends the initial events. Source: KEP-3157. */
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** A list while it arrives: projected at once, so that it takes no more memory than the cache will. */
export class InitialList {
  /** True when the list is complete and was taken over. */
  done = false;
  private readonly collected = new Map<string, CacheEntry>();

  constructor(private readonly cache: ObjectCache) {}

  static isEnd(bookmark: KubeObject): boolean {
    return bookmark.metadata.annotations?.[INITIAL_EVENTS_END] === 'true';
  }

  set(object: KubeObject): void {
    this.collected.set(keyOf(object), this.cache.project(object));
  }

  delete(object: KubeObject): void {
    this.collected.delete(keyOf(object));
  }

  clear(): void {
    this.collected.clear();
  }

  entries(): Iterable<CacheEntry> {
    return this.collected.values();
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
