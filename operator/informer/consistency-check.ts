import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ObjectCache } from './object-cache';
import { readPagedList } from './initial-list';
import type { ReflectorOptions } from './reflector-options';
import { compareResourceVersions } from '../client/api-client';
import { undecodableReason } from './reflector-errors';

/** The result of a consistency check. */
export interface ConsistencyCheckResult {
  /**
   * How many objects differ from the server's because the cache missed an event, and no later event corrected
   * them.
   */
  readonly missed: number;
  /** The objects, as `namespace/name`, for a log line. */
  readonly objects: readonly string[];
  /** How many objects the server listed. */
  readonly checked: number;
  /**
   * Present when the server's history was rolled back, as when etcd is restored from a backup: then the cache
   * and its watch follow a history that no longer exists, and nothing counts as missed.
   */
  readonly rollback?: {
    /** The version that the cache had reached. */
    readonly known: string;
    /** The version of the server's list. */
    readonly server: string;
  };
  /**
   * False when the result proves nothing:
   * - Some objects differed, but the cache did not reach the version of the server's list within `waitMs`:
   *   their events may be late rather than missed, and are not counted.
   * - The list was older than the cache.
   * - The cache took over a list of its own meanwhile: it corrected every object, and changes that were
   *   undone in between were never reported.
   */
  readonly conclusive: boolean;
}

/** Options of a consistency check. */
export type ConsistencyCheckOptions = Pick<
  ReflectorOptions,
  'client' | 'type' | 'cache' | 'namespace' | 'labelSelector' | 'pageSize'
> & {
  /** How late events may be, in milliseconds; a bookmark comes every 60 s. @default 75000 */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
};

/**
 * Compares the cache with the server's list of metadata.
 *
 * It does not race with the watch: an object that differs is counted only if the cache has reached the
 * version of the list and no event of the object arrived in between.
 *
 * No watch reports a rollback of the server's history: an API server takes a version that it has not reached
 * yet as the start of a watch, and is silent until it reaches it. Two things prove a rollback. A consistent
 * read is never older than a version that was known before it; it is done twice, since one response may come
 * from a cache on the way. And a list at or above the version of a cached object contains that version of the
 * object, or a newer one.
 */
export async function checkConsistency(options: ConsistencyCheckOptions): Promise<ConsistencyCheckResult> {
  const { cache } = options;
  const touched = new Set<string>();
  const watchdog = new InterruptibleSleep();
  const unsubscribe = cache.addObserver(({ object }) => {
    touched.add(keyOf(object.object));
    watchdog.wake();
  });
  try {
    const listed = new Map<string, string>();
    const { resourceVersion: seen, lists } = cache;
    const version = await list(options, listed);
    const isOlder = compareResourceVersions(version, seen) < 0;
    const { suspects, contradicted } = isOlder
      ? { suspects: [], contradicted: await isServerOlder(options, seen) }
      : differences(cache, listed, version);
    // After a relist of the cache, its former state is no longer comparable.
    if (contradicted && cache.lists === lists) {
      const rollback = { known: seen, server: version };
      return { missed: 0, objects: [], checked: listed.size, conclusive: true, rollback };
    }
    // The list came from a server that lags behind, and proves nothing.
    if (isOlder) return { missed: 0, objects: [], checked: listed.size, conclusive: false };
    const open = (): string[] =>
      suspects.filter((key) => !touched.has(key) && compareWithList(cache, key, listed.get(key), version) === 'behind');
    const reached = (): boolean => compareResourceVersions(cache.resourceVersion, version) >= 0;
    const relisted = (): boolean => cache.lists !== lists;
    const deadline = Date.now() + (options.waitMs ?? 75_000);
    while (open().length > 0 && !reached() && !relisted() && Date.now() < deadline) {
      await watchdog.sleep(Math.min(POLL_MS, deadline - Date.now()), options.signal);
    }
    const objects = open();
    const conclusive = objects.length === 0 || (reached() && !relisted());
    return {
      missed: conclusive ? objects.length : 0,
      objects,
      checked: listed.size,
      conclusive,
    };
  } finally {
    unsubscribe();
  }
}

/** Bookmarks raise no event, so the progress of the cache is polled at this interval, in milliseconds. */
const POLL_MS = 250;

/**
 * Lists the version of each object, and nothing else: the versions are kept for as long as events may be
 * late.
 */
async function list(options: ConsistencyCheckOptions, listed: Map<string, string>): Promise<string> {
  const { client, type, namespace, labelSelector, pageSize = 500, signal } = options;
  return readPagedList(
    client,
    type,
    {
      limit: pageSize,
      metadataOnly: true,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(signal === undefined ? {} : { signal }),
    },
    (object) => {
      if (undecodableReason(object) === undefined) listed.set(keyOf(object), object.metadata.resourceVersion ?? '');
    },
    () => listed.clear(),
  );
}

/** Whether a second read returns a version that is older than one that was known before. */
async function isServerOlder(
  { client, type, namespace, labelSelector, signal }: ConsistencyCheckOptions,
  than: string,
): Promise<boolean> {
  const { resourceVersion } = await client.list(type, {
    limit: 1,
    metadataOnly: true,
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(signal === undefined ? {} : { signal }),
  });
  return compareResourceVersions(resourceVersion, than) < 0;
}

interface Differences {
  /** The objects whose state in the cache is older than in the list. */
  readonly suspects: readonly string[];
  /** The list contains a state of an object that contradicts the history of the cache. */
  readonly contradicted: boolean;
}

function differences(cache: ObjectCache, listed: ReadonlyMap<string, string>, version: string): Differences {
  const suspects: string[] = [];
  let contradicted = false;
  for (const [key, its] of listed) {
    const stands = compareWithList(cache, key, its, version);
    if (stands === 'behind') suspects.push(key);
    contradicted ||= stands === 'contradicted';
  }
  for (const { object } of cache.list()) {
    const key = keyOf(object);
    if (!listed.has(key) && compareWithList(cache, key, undefined, version) === 'behind') suspects.push(key);
  }
  return { suspects, contradicted };
}

/**
 * Compares the cache's state of an object with a list of this version: `behind` when it is older than the
 * list's; `contradicted` when the list has an older one although it should contain the cache's.
 */
function compareWithList(
  cache: ObjectCache,
  key: string,
  listed: string | undefined,
  version: string,
): 'current' | 'behind' | 'contradicted' {
  const slash = key.indexOf('/');
  const namespace = key.slice(0, slash);
  const name = key.slice(slash + 1);
  const cached = cache.get(namespace === '' ? { name } : { namespace, name })?.object.metadata;
  if (cached === undefined) return listed === undefined ? 'current' : 'behind';
  const { resourceVersion: its = '' } = cached;
  const isKnown = compareResourceVersions(its, version) <= 0;
  if (listed === undefined) return isKnown ? 'behind' : 'current';
  const order = compareResourceVersions(its, listed);
  if (order < 0) return 'behind';
  return order > 0 && isKnown ? 'contradicted' : 'current';
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

/** A sleep that an event or the caller's signal cuts short. */
class InterruptibleSleep {
  private rouse: (() => void) | undefined;

  wake(): void {
    this.rouse?.();
  }

  async sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const wake = (): void => this.wake();
    signal?.addEventListener('abort', wake);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(1, milliseconds));
      this.rouse = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.rouse = undefined;
    signal?.removeEventListener('abort', wake);
    signal?.throwIfAborted();
  }
}
