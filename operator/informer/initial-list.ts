import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient, ListOptions } from '../client/api-client';
import { ApiError } from '../client/errors';
import type { ObjectCache } from './object-cache';
import type { CacheEntry } from './projection';

/** Marks the bookmark that ends the initial events. Source: KEP-3157. */
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** A list while it arrives: objects are projected at once, so that it takes no more memory than the cache. */
export class InitialList {
  /** True when the list is complete and in the cache. */
  done = false;
  private readonly collected = new Map<string, CacheEntry>();

  constructor(private readonly cache: ObjectCache) {}

  static isInitialEventsEnd(bookmark: KubeObject): boolean {
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

/**
 * Reads all pages of a consistent list and passes on each object as it comes, so that at most one page is in
 * memory.
 *
 * When the snapshot of the pages expires midway (410), `restart` is called and the list is read again in one
 * piece, as client-go does.
 *
 * @returns the resourceVersion of the list
 */
export async function readPagedList(
  client: Pick<ApiClient, 'list'>,
  type: ResourceType,
  options: ListOptions & { readonly limit: number },
  take: (object: KubeObject) => void,
  restart: () => void,
): Promise<string> {
  const { limit, ...unlimited } = options;
  let page = await client.list(type, options);
  page.items.forEach(take);
  while (page.continueToken !== undefined) {
    try {
      page = await client.list(type, { ...options, limit, continueToken: page.continueToken });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 410) throw error;
      restart();
      page = await client.list(type, unlimited);
    }
    page.items.forEach(take);
  }
  return page.resourceVersion;
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
