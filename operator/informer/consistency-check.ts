import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ObjectCache } from './object-cache';
import { readPagedList } from './initial-list';
import type { ReflectorOptions } from './reflector-options';
import { compareResourceVersions } from '../client/api-client';
import { undecodableReason } from './reflector-errors';

/** What an audit found. */
export interface ConsistencyCheckResult {
  /** How many objects the cache has missed an event of, which no event has made good since. */
  readonly missed: number;
  /** The objects, as `namespace/name`, for a log line. */
  readonly objects: readonly string[];
  /** How many objects the server listed. */
  readonly checked: number;
  /**
   * Present when the server's history was set back, as by an etcd that was restored from a backup: then the cache and its watch follow a
   * history that is no more, and nothing counts as missed.
   */
  readonly rollback?: {
    /** The version that the cache had reached. */
    readonly known: string;
    /** The version of the server's list. */
    readonly server: string;
  };
  /**
   * False when some objects differed but the cache had not come as far as the server's list within the time allowed: they may be late
   * rather than missed, and are not counted. False, too, when the list itself was older than the cache, and when the cache took over a list
   * of its own meanwhile: what came and went in between no event tells of, and the rest has been made good.
   */
  readonly conclusive: boolean;
}

/** Options of an audit. */
export type ConsistencyCheckOptions = Pick<
  ReflectorOptions,
  'client' | 'type' | 'cache' | 'namespace' | 'labelSelector' | 'pageSize'
> & {
  /** How long events may be late, in milliseconds; a bookmark comes every 60 s. @default 75000 */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
};

/**
 * Compares the cache with the server's list of metadata.
 *
 * It does not race with the watch: an object that differs is counted only if the cache has reached the version of the list and no event
 * of the object came between.
 *
 * That the history was set back, no watch tells: an API server takes a version that it has yet to come to for a start, and is silent until it has.
 * Two things prove it. A consistent read is never older than what was known before it; it is asked for twice, since one answer may come out of some
 * cache on the way. And a list that reaches the version of a cached object holds that version of it, or a newer one.
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
    // What a list of the cache's own has replaced meanwhile is compared no more.
    if (contradicted && cache.lists === lists) {
      const rollback = { known: seen, server: version };
      return { missed: 0, objects: [], checked: listed.size, conclusive: true, rollback };
    }
    // It came from a server that is behind, and proves nothing.
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

/** Bookmarks raise no event, so their progress is looked for this often, in milliseconds. */
const POLL_MS = 250;

/** Of each object its version alone: they are kept for as long as the events may be late. */
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

/** Whether the server, asked once more, is at a version that is older than one that was known before. */
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
  /** The objects of which the cache's state is older than the list's. */
  readonly suspects: readonly string[];
  /** One of them stands as the cache's history does not allow. */
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
 * How the cache's state of an object stands to a list of this version: `behind` when it is older than the list's; `contradicted` when the list
 * holds an older one though it ought to know the cache's.
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
