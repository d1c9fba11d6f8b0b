import { errorMessage } from '../../constructs/kube/errors';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { compareResourceVersions, type WatchEvent } from '../client/api-client';
import { ApiError } from '../client/errors';
import { withAnySignal, untilAborted } from '../process/wait';
import { checkConsistency, type ConsistencyCheckResult } from './consistency-check';
import { ReflectorBackoff, type ReflectorOptions, type ReflectorState } from './reflector-options';
import { InitialList, readPagedList } from './initial-list';
import {
  HistoryRolledBackError,
  ShortWatchError,
  WatchListUnsupportedError,
  UndecodableObjectError,
  describeObject,
  isExpired,
  isIdleTimeout,
  isWatchListFailure,
  isWatchListUnsupported,
  isTypeMissing,
  undecodableReason,
} from './reflector-errors';

/**
 * Keeps an `ObjectCache` in sync with the API server for one resource type: a list, then watches from the
 * version of the list, for as long as it runs.
 *
 * Guarantees:
 * - It recovers from any failure: by a watch from the last version where the server still knows it, else
 *   (410) by a new list.
 * - A type that the server does not have (404) is requested until it exists, and then listed.
 * - Watches that go silent, that end at once again and again, or that are cut are detected; delays follow
 *   failures, never a planned end.
 * - An object that cannot be decoded is skipped and reported; the others are not affected.
 *
 * Source: KEP-3157 for streaming lists. The paged list is the fallback: permanently where the server does not
 * support them, for one list where they fail.
 */
export class Reflector {
  private readonly backoff: ReflectorBackoff;
  private readonly now: () => number;
  private readonly random: () => number;
  private running: Promise<void> | undefined;
  private stopped: ReflectorStoppedError | undefined;
  private session = new AbortController();
  private readonly ended = new AbortController();
  private paged: boolean;
  /** Streaming lists that failed since the last complete list or the last attempt at a paged one. */
  private watchListFailures = 0;
  /** The last version that the watch reached; empty when a list is needed. */
  private lastSyncResourceVersion = '';
  private isSynced = false;
  private isMissing = false;
  private watching = false;
  private lastActivity = 0;
  private lists = 0;
  private openedAt = 0;
  /** The server has accepted the current watch. */
  private answered = false;
  private lastError: ReflectorState['lastError'];
  private syncWaiters: Waiter[] = [];
  private listWaiters: Waiter[] = [];

  constructor(private readonly options: ReflectorOptions) {
    this.backoff = new ReflectorBackoff(options.backoff);
    this.now = options.now ?? Date.now;
    this.random = options.backoff?.random ?? Math.random;
    this.paged = options.pagedList ?? false;
  }

  /** Starts to list and watch. Failures are reported by `onError` and `state()`, never to the caller. */
  start(): void {
    if (this.stopped !== undefined)
      throw new ReflectorStoppedError(`The reflector of ${this.options.type.kind} was stopped; make a new one.`);
    this.running ??= this.run();
  }

  /**
   * Resolves when the first list is in the cache.
   * @throws ReflectorStoppedError when `stop` comes first.
   */
  synced(): Promise<void> {
    return this.isSynced ? Promise.resolve() : this.wait(this.syncWaiters);
  }

  state(): ReflectorState {
    const {
      isSynced: synced,
      isMissing: missing,
      watching,
      lastActivity,
      lastSyncResourceVersion: position,
      lists,
      lastError,
    } = this;
    const resourceVersion = position === '' ? this.options.cache.resourceVersion : position;
    return {
      synced,
      missing,
      watching,
      lastActivity,
      resourceVersion,
      lists,
      ...(lastError === undefined ? {} : { lastError }),
    };
  }

  /** Ends the watch; resolves when nothing is running any more. */
  async stop(): Promise<void> {
    this.stopped ??= new ReflectorStoppedError(`The reflector of ${this.options.type.kind} was stopped.`);
    this.session.abort(this.stopped);
    this.ended.abort(this.stopped);
    for (const waiter of [...this.syncWaiters.splice(0), ...this.listWaiters.splice(0)]) waiter.reject(this.stopped);
    await this.running;
    this.watching = false;
  }

  /**
   * Lists again now; resolves when the new list is in the cache.
   * @throws ReflectorStoppedError when `stop` comes first; ApiError 404 when the server does not have the
   * type.
   */
  relist(): Promise<void> {
    const done = this.wait(this.listWaiters);
    this.lastSyncResourceVersion = '';
    this.session.abort(RELIST);
    return done;
  }

  /**
   * Compares the cache with a list of the server's metadata, and repairs it by a new list when they differ.
   * Once `signal` aborts, it no longer waits for the new list: the result is known, and the server may be
   * unavailable. After a rollback of the server's history (etcd was restored), the new list is taken over
   * whatever its versions.
   * @throws ApiError or TransportError when the list fails; the signal's reason while it is read;
   * ReflectorStoppedError.
   */
  async checkConsistency(
    options: { readonly waitMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<ConsistencyCheckResult> {
    await this.synced();
    const signals = options.signal === undefined ? [this.ended.signal] : [this.ended.signal, options.signal];
    const result = await withAnySignal(signals, (signal) => checkConsistency({ ...this.options, ...options, signal }));
    if (result.missed === 0 && result.rollback === undefined) return result;
    // Before the list: until it has arrived, the responses to our own writes must count as newer than the
    // cache.
    if (result.rollback !== undefined) this.options.cache.forgetVersions();
    try {
      await untilAborted(this.relist(), options.signal);
    } catch (error) {
      if (options.signal?.aborted !== true) throw error;
    }
    return result;
  }

  private wait(waiters: Waiter[]): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.stopped === undefined) waiters.push({ resolve, reject });
      else reject(this.stopped);
    });
  }

  private async run(): Promise<void> {
    while (this.stopped === undefined) {
      this.session = new AbortController();
      if (this.listWaiters.length > 0) this.lastSyncResourceVersion = '';
      const started = this.now();
      try {
        await this.listAndWatch();
        this.checkLength();
      } catch (error) {
        await this.recover(error, this.now() - started);
      }
    }
  }

  /** One session: a list if one is needed, then a watch to its planned end. */
  private async listAndWatch(): Promise<void> {
    if (this.lastSyncResourceVersion === '' && (this.paged || this.watchListFailures >= MAX_WATCH_LIST_FAILURES))
      await this.listPages();
    const initial = this.lastSyncResourceVersion === '' ? new InitialList(this.options.cache) : undefined;
    try {
      await this.watch(initial);
    } catch (error) {
      if (initial?.done !== false) throw error;
      if (!isWatchListUnsupported(error)) {
        if (isWatchListFailure(error)) this.watchListFailures++;
        throw error;
      }
      this.paged = true;
      return this.listAndWatch();
    }
    if (initial?.done === false) throw new WatchListUnsupportedError('the watch ended before its initial events did');
  }

  private async watch(initial: InitialList | undefined): Promise<void> {
    const { client, type, namespace, labelSelector, idleTimeoutMs = 70_000 } = this.options;
    const [shortest, longest] = this.options.watchTimeoutSeconds ?? [300, 600];
    const { signal } = this.session;
    this.openedAt = this.now();
    this.answered = false;
    const events = client.watch(type, {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(initial === undefined ? { resourceVersion: this.lastSyncResourceVersion } : { sendInitialEvents: true }),
      timeoutSeconds: Math.round(shortest + (longest - shortest) * this.random()),
      signal,
      idleTimeoutMs,
      // During the initial list every object is needed.
      skipOwnEcho: (version) => initial?.done !== false && this.skipOwnEcho(version),
      onOpen: () => {
        this.openedAt = this.now();
        this.answered = true;
        this.alive();
      },
    });
    for await (const event of events) {
      // The decoder may still yield events that were read before the abort.
      signal.throwIfAborted();
      this.alive();
      if (initial === undefined || initial.done) this.apply(event);
      else this.collect(initial, event);
    }
  }

  private async listPages(): Promise<void> {
    const { client, type, namespace, labelSelector, cache } = this.options;
    const initial = new InitialList(cache);
    // If the paged list fails as well, the server is in trouble, not the streaming.
    this.watchListFailures = 0;
    const version = await readPagedList(
      client,
      type,
      {
        limit: this.options.pageSize ?? 500,
        signal: this.session.signal,
        ...(namespace === undefined ? {} : { namespace }),
        ...(labelSelector === undefined ? {} : { labelSelector }),
      },
      (object) => this.isolate(object, () => initial.set(object)),
      () => initial.clear(),
    );
    this.alive();
    this.replaceCache(initial, version);
  }

  private collect(initial: InitialList, { type, object }: WatchEvent): void {
    if (type === 'BOOKMARK') {
      if (InitialList.isInitialEventsEnd(object)) this.replaceCache(initial, object.metadata.resourceVersion ?? '');
      // A server without streaming lists never marks the end of the list.
      else throw new WatchListUnsupportedError('the server sent a bookmark before the end of the initial events');
    } else {
      this.isolate(object, () => (type === 'DELETED' ? initial.delete(object) : initial.set(object)));
    }
  }

  private replaceCache(initial: InitialList, version: string): void {
    initial.done = true;
    this.options.cache.replace(initial.entries(), version);
    initial.clear();
    this.lastSyncResourceVersion = version;
    this.watchListFailures = 0;
    this.lists++;
    this.isSynced = true;
    for (const waiter of [...this.syncWaiters.splice(0), ...this.listWaiters.splice(0)]) waiter.resolve();
    this.setMissing(false);
  }

  private onTypeMissing(error: ApiError): void {
    // When the type is installed again, its objects are others, and no watch has reported them.
    this.lastSyncResourceVersion = '';
    for (const waiter of this.listWaiters.splice(0)) waiter.reject(error);
    this.setMissing(true);
  }

  private setMissing(isMissing: boolean): void {
    if (this.isMissing === isMissing) return;
    this.isMissing = isMissing;
    this.options.onMissing?.(isMissing);
  }

  private apply({ type, object }: WatchEvent): void {
    const { cache } = this.options;
    if (type === 'BOOKMARK') {
      const version = object.metadata.resourceVersion ?? '';
      if (compareResourceVersions(version, this.lastSyncResourceVersion) < 0) {
        throw new HistoryRolledBackError(
          `the server is at version ${version}, but was at ${this.lastSyncResourceVersion}; was etcd restored?`,
        );
      }
      cache.advance(version);
      this.lastSyncResourceVersion = version;
      return;
    }
    this.isolate(object, () => (type === 'DELETED' ? cache.applyDeletion(object) : cache.applyChange(object)));
    const version = (object.metadata as Partial<KubeObject['metadata']> | undefined)?.resourceVersion;
    if (version !== undefined) this.reach(version);
  }

  private skipOwnEcho(version: string): boolean {
    // Events of an aborted watch are ignored.
    if (this.session.signal.aborted || !this.options.cache.applyEcho(version)) return false;
    this.alive();
    this.reach(version);
    return true;
  }

  private reach(version: string): void {
    if (compareResourceVersions(version, this.lastSyncResourceVersion) > 0) this.lastSyncResourceVersion = version;
  }

  /** Reports an object that cannot be decoded or stored, so that it does not affect the others. */
  private isolate(object: KubeObject, take: () => void): void {
    const why = undecodableReason(object);
    if (why === undefined) {
      try {
        take();
      } catch (cause) {
        const said = errorMessage(cause);
        this.options.onError?.(new UndecodableObjectError(this.options.type, describeObject(object), said, { cause }));
      }
    } else {
      this.options.onError?.(new UndecodableObjectError(this.options.type, describeObject(object), why));
    }
  }

  private alive(): void {
    this.lastActivity = this.now();
    this.watching = true;
    this.lastError = undefined;
  }

  /**
   * A watch should last for minutes; a server or proxy that ends it at once must not be called again without
   * a delay.
   */
  private checkLength(): void {
    const lasted = this.now() - this.openedAt;
    if (lasted < (this.options.minWatchMs ?? 1000))
      throw new ShortWatchError(`the server ended the watch after ${lasted} ms`);
    this.backoff.reset();
  }

  private async recover(error: unknown, lasted: number): Promise<void> {
    if (this.session.signal.aborted) return;
    if (this.answered && this.lastSyncResourceVersion !== '' && isIdleTimeout(error)) {
      // The connection worked, so earlier failures are over. A watch of a type that rarely changes always
      // ends like this.
      this.backoff.reset();
      return;
    }
    this.options.onError?.(error);
    this.lastError = { error, at: this.now() };
    this.watching = false;
    if (lasted >= (this.options.stableAfterMs ?? 10_000)) this.backoff.reset();
    const expired = isExpired(error);
    if (expired || error instanceof HistoryRolledBackError) this.lastSyncResourceVersion = '';
    if (error instanceof WatchListUnsupportedError) this.paged = true;
    const isGone = error instanceof ApiError && isTypeMissing(error);
    if (isGone) this.onTypeMissing(error);
    const wait = isGone ? Math.min(this.backoff.next(), MISSING_RETRY_MS) : this.backoff.next();
    // The first 410 is not a failure of the server: our version became too old while we were disconnected.
    if (expired && this.backoff.count === 1) return;
    const asked = error instanceof ApiError ? (error.status.retryAfterSeconds ?? 0) * 1000 : 0;
    try {
      await delay(Math.max(wait, asked), undefined, { signal: this.session.signal });
    } catch {
      // Woken up by `stop` or `relist`.
    }
  }
}

/** The reflector was stopped. */
export class ReflectorStoppedError extends Error {
  override readonly name = 'ReflectorStoppedError';
}

/** The abort reason of a session that `relist` ends. */
const RELIST = new Error('a new list is wanted');

/** After this many failed streaming lists, the next list is paged. */
const MAX_WATCH_LIST_FAILURES = 2;

/**
 * A missing type may be installed at any time, so the server is asked at least this often, in milliseconds.
 */
const MISSING_RETRY_MS = 5_000;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}
