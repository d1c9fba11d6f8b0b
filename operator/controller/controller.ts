import { childTypes, type AnyKind } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import { DriftBackoff } from '../apply/drift-backoff';
import { getLiveMetadata, isPaused, verifyOwner, type LiveReader } from '../apply/ownership';
import type { ObjectRef } from '../client/api-client';
import { ApiError, TransportError } from '../client/errors';
import type { CacheView } from '../informer/cache-view';
import type { CacheEvent, CacheHandler } from '../informer/projection';
import { NotLeaderError } from '../leader/leader-election';
import type { ControllerMetrics, ReconcileOutcome } from '../metrics/controller-metrics';
import { withoutCause, type Logger } from '../process/logger';
import { DeletedCompletions } from '../reconcile/completions';
import type { ReconcileResult, ReconcileContext } from '../reconcile/context';
import { classify } from '../reconcile/problems';
import { FunctionLimits } from '../reconcile/function-limits';
import { reconcileObject } from '../reconcile/reconcile-object';
import { ObjectRenderer } from '../reconcile/render-object';
import { reconcileShared } from '../reconcile/reconcile-shared';
import { SharedKeyIndex, sharedId, type SharedState } from '../reconcile/shared-keys';
import { runWorkers, type WorkersEnd } from '../workqueue/run-workers';
import type { WorkQueue } from '../workqueue/work-queue';
import {
  AwaitedNames,
  keysOfChild,
  objectKey,
  sharedIdOf,
  sharedQueueKey,
  parseQueueKey,
  type QueueKey,
  type Target,
} from './queue-keys';

/**
 * The longest delay while the server is unreachable, in milliseconds. The backoff counts the failures of an
 * object, and an outage is no fault of the object.
 */
const LONGEST_OUTAGE_DELAY_MS = 30_000;

/**
 * This many refusals in a row, over some 20 s, are no longer the lag of a watch: an admission webhook may
 * reject with the same codes.
 */
const MAX_QUIET_STALE_RETRIES = 12;

/** What a controller gets for its reconciles; the rest is its own. */
export type ControllerContext = Omit<
  ReconcileContext,
  'shared' | 'driftBackoff' | 'completions' | 'limits' | 'renderer'
>;

/** Options of `Controller`. */
interface ControllerOptions {
  /** The caller starts and syncs its caches. */
  readonly context: ControllerContext;
  readonly queue: WorkQueue<QueueKey>;
  readonly metrics: ControllerMetrics;
  readonly logger: Logger;
  /** How many keys are reconciled at once. */
  readonly concurrency: number;
  /**
   * Whether another controller of this process also writes objects of a type: then a write of this process is
   * not always a write of this controller. @default none
   */
  readonly hasOtherWriter?: (type: ResourceType) => boolean;
  /** How long a function of the kind may run, in milliseconds. @default 5000 */
  readonly limitMs?: number;
}

/**
 * Reconciles the objects of one kind: maps events to keys, and reconciles what the keys name.
 *
 * Guarantees: nothing is queued before `run`, however long another replica leads: the metrics of a queue that
 * nothing works on would report a backlog, and later waiting times, that do not exist. Until then events only
 * update the index; `run` queues everything in the caches.
 */
export class Controller {
  readonly kind: AnyKind;
  private readonly context: ReconcileContext;
  private readonly index: SharedKeyIndex;
  private readonly sharedStates = new Map<string, SharedState>();
  private readonly awaited = new AwaitedNames();
  private readonly staleOwners: StaleOwners;
  private running = false;

  constructor(private readonly options: ControllerOptions) {
    this.kind = options.context.kind;
    const limits = new FunctionLimits(this.kind, options);
    this.context = {
      ...options.context,
      shared: this.sharedStates,
      driftBackoff: new DriftBackoff(),
      completions: new DeletedCompletions(),
      limits,
      renderer: new ObjectRenderer(this.kind, limits, (most) => this.nextObjects(most)),
    };
    this.index = new SharedKeyIndex(this.kind, limits);
    this.staleOwners = new StaleOwners(this.context);
    this.follow(this.context.objects, (event) => this.onObject(event));
    options.metrics.setMaxConcurrent(options.concurrency);
    for (const type of childTypes(this.kind)) this.watchChildren(type, this.context.children(type));
  }

  /**
   * Reconciles every object once, then what changes, until `signal` aborts; then lets running reconciles end.
   * Call it once, when the caches have been filled: from then on, changes count as a user's and go before the
   * first round.
   */
  run(signal: AbortSignal, drainMs: number): Promise<WorkersEnd<QueueKey>> {
    const { queue, concurrency } = this.options;
    this.enqueueAll();
    this.running = true;
    return runWorkers(queue, {
      concurrency,
      signal,
      drainMs,
      process: (key) => this.process(key),
      onError: (key, error) =>
        this.options.logger.error({ key, err: error }, 'a reconcile ended unexpectedly; it is tried again'),
    });
  }

  /**
   * Called when the server turns out to lack a type, or has it again: reconciles all objects, if the type
   * concerns this kind.
   */
  onTypeChange(type: ResourceType): void {
    const concerns = [this.kind.type, ...childTypes(this.kind)].some((own) => typeKey(own) === typeKey(type));
    if (this.running && concerns) this.enqueueAll();
  }

  /**
   * The number of records in the drift backoff and of the calls of the kind's functions; those of deleted objects and
   * children are not among them.
   */
  get trackedCount(): number {
    return this.context.driftBackoff.size + this.context.limits.size;
  }

  /**
   * Queues everything in the caches. Earlier events are not needed: a deleted object leaves nothing to
   * reconcile but its shared children, and those are in the caches.
   */
  private enqueueAll(): void {
    const { queue } = this.options;
    for (const { object } of this.context.objects.list()) {
      // Shared children first: an object's own children may need them.
      for (const id of this.index.ids(object.metadata)) queue.add(sharedQueueKey(id), 'resync');
      queue.add(objectKey(object.metadata), 'resync');
    }
    for (const id of this.unreferencedSharedIds()) queue.add(sharedQueueKey(id), 'resync');
  }

  /** The objects whose keys are next in the queue, except for those that are not rendered. */
  private nextObjects(most: number): readonly KubeObject[] {
    return this.options.queue.next(most).flatMap((key) => {
      const target = parseQueueKey(key);
      const object = target.what === 'object' ? this.context.objects.get(target.ref)?.object : undefined;
      if (object === undefined || object.metadata.deletionTimestamp !== undefined || isPaused(object)) return [];
      return [object];
    });
  }

  /**
   * The ids of shared children whose key no object names any more: the last object was deleted while this
   * process did not lead.
   */
  private *unreferencedSharedIds(): Iterable<string> {
    for (const type of childTypes(this.kind)) {
      for (const { object } of this.context.children(type).list()) {
        const id = sharedIdOf(this.kind, object);
        if (id !== undefined && this.index.objects(id).length === 0) yield id;
      }
    }
  }

  private onObject({ type, object: { object } }: CacheEvent): void {
    const named = type === 'deleted' ? this.index.remove(object) : this.index.update(object);
    if (type === 'deleted') this.forget(object);
    if (!this.running) return;
    // Shared children first: an object's own children may need them.
    const ids = named.length === 0 && type !== 'deleted' ? this.sharedIdsOwnedBy(object) : named;
    for (const id of ids) this.add(sharedQueueKey(id));
    this.add(objectKey(object.metadata));
  }

  /** Forgets an object that was deleted. */
  private forget(object: KubeObject): void {
    this.context.effects?.forget(object);
    this.context.driftBackoff.forget(object.metadata.uid ?? '');
    this.context.completions.forget(object.metadata.uid ?? '');
    this.context.limits.forget(object.metadata.uid ?? '');
  }

  /**
   * The ids of the shared children that an object owns. Its spec may no longer be valid, and then does not
   * say what it names.
   */
  private sharedIdsOwnedBy({ metadata: { uid = '', deletionTimestamp } }: KubeObject): readonly string[] {
    // The garbage collector decides about the children of an object that is being deleted: it may orphan
    // them.
    if (this.kind.shared.length === 0 || deletionTimestamp !== undefined) return [];
    const held = childTypes(this.kind).flatMap((type) => this.context.children(type).byOwner(uid));
    return held.flatMap(({ object }) => sharedIdOf(this.kind, object) ?? []);
  }

  private watchChildren(type: ResourceType, cache: CacheView): void {
    this.follow(cache, ({ type: change, object: { object }, old }) => {
      if (change === 'deleted') {
        this.context.driftBackoff.forget(object.metadata.uid ?? '');
        this.context.completions.recordDeletion(this.kind, object);
      }
      if (!this.running) return;
      const keys = new Set([
        ...keysOfChild(this.kind, this.context.objects, object),
        ...(old === undefined ? [] : keysOfChild(this.kind, this.context.objects, old.object)),
        ...this.awaited.happened(type, object.metadata),
      ]);
      for (const key of keys) this.add(key);
    });
  }

  private follow(cache: CacheView, handler: CacheHandler): void {
    if (this.options.hasOtherWriter?.(cache.type) === true) cache.addObserver(handler);
    else cache.addEventHandler(handler);
  }

  private add(key: QueueKey): void {
    this.options.queue.add(key, 'user');
  }

  private async process(key: QueueKey): Promise<void> {
    const { metrics, queue, logger } = this.options;
    metrics.started();
    const began = performance.now();
    const since = this.awaited.begin();
    const finished = (result: ReconcileOutcome): void => metrics.finished(result, (performance.now() - began) / 1000);
    try {
      const next = await this.reconcile(parseQueueKey(key));
      if (this.awaited.set(key, next.awaited ?? [], since)) this.add(key);
      const { failed, thrown } = next;
      const err = thrown && { err: withoutCause(thrown) };
      if (failed !== undefined) logger.warn({ key, ...failed, ...err }, 'not as the spec says');
      if (next.action === 'retry') queue.addRateLimited(key);
      else queue.forget(key);
      if (next.requeueAfterMs !== undefined) queue.addAfter(key, next.requeueAfterMs);
      finished(resultOf(next));
      if (isTerminal(next)) metrics.terminalError();
    } catch (error) {
      finished(this.requeueAfterError(key, error));
    } finally {
      this.awaited.end(since);
    }
  }

  /** Requeues a key after an error. @returns how the reconcile is counted */
  private requeueAfterError(key: QueueKey, error: unknown): ReconcileOutcome {
    const { queue, logger } = this.options;
    const { kind, reason, message } = classify(error);
    const delayMs = queue.addRateLimited(key);
    if (error instanceof TransportError) queue.addAfter(key, LONGEST_OUTAGE_DELAY_MS);
    const failure = { key, reason, message, delayMs };
    if (kind !== 'stale') {
      logger.error({ ...failure, err: error }, 'reconcile failed; trying again');
      return 'error';
    }
    if (error instanceof NotLeaderError) {
      logger.debug(failure, 'nothing was written: this process does not lead');
      return 'requeue';
    }
    const target = parseQueueKey(key);
    if (error instanceof ApiError && target.what === 'object') this.staleOwners.mark(target.ref);
    if (error instanceof TransportError || queue.failures(key) < MAX_QUIET_STALE_RETRIES)
      logger.debug(failure, 'the cache was behind; trying again');
    else logger.warn(failure, 'refused as if the cache were behind, again and again; trying again');
    return 'requeue';
  }

  private async reconcile(target: Target): Promise<ReconcileResult> {
    // Without the type there are no objects; the cached ones were deleted.
    if (this.context.isMissing(this.kind.type)) return { action: 'wait' };
    await this.context.limits.turn();
    if (target.what === 'shared') return this.reconcileSharedKey(target);
    await this.staleOwners.verify(target.ref);
    const { objects } = this.context;
    const object = objects.get(target.ref)?.object;
    try {
      return await reconcileObject(this.context, target.ref);
    } finally {
      // The object was deleted during the reconcile, which has recorded more about it since.
      if (object !== undefined && objects.get(target.ref)?.object.metadata.uid !== object.metadata.uid)
        this.forget(object);
    }
  }

  private async reconcileSharedKey(target: Extract<Target, { what: 'shared' }>): Promise<ReconcileResult> {
    const id = sharedId(target.group, target.namespace, target.key);
    for (const ref of this.index.objects(id)) await this.staleOwners.verify(ref);
    const objects = this.index.objects(id).flatMap((ref) => this.context.objects.get(ref)?.object ?? []);
    const { state, retry, requeueAfterMs, awaited, failed, thrown } = await reconcileShared(this.context, {
      ...target,
      objects,
    });
    const before = this.sharedStates.get(id);
    if (state === undefined) {
      this.sharedStates.delete(id);
      this.context.limits.forget(id);
    } else this.sharedStates.set(id, state);
    if (JSON.stringify(before) !== JSON.stringify(state)) {
      // Read again: an object that was added meanwhile has found no state, and waits.
      for (const ref of this.index.objects(id)) this.add(objectKey(ref));
    }
    return { action: retry ? 'retry' : 'wait', requeueAfterMs, awaited, failed, thrown };
  }
}

/** The result label, as controller-runtime names it. */
function resultOf({ action: next, failed, requeueAfterMs }: ReconcileResult): ReconcileOutcome {
  if (failed !== undefined) return 'error';
  if (next === 'retry') return 'requeue';
  return requeueAfterMs === undefined ? 'success' : 'requeue_after';
}

/**
 * Whether only a change helps: a failure that is tried again by itself, even after a drift backoff, is not
 * terminal.
 */
function isTerminal({ action: next, failed, requeueAfterMs }: ReconcileResult): boolean {
  return failed !== undefined && next === 'wait' && requeueAfterMs === undefined;
}

/** Created for each refusal, and compared by identity. */
interface StaleMark {
  /** The UID that was in the cache. */
  readonly uid: string;
}

/**
 * Objects that may have been deleted, or be being deleted, though the cache has them as they were: their
 * watch may be down while those of their children are not.
 *
 * Without this, an operator that creates a child of such an object works against the garbage collector, which
 * deletes the child: the event enqueues the object at once, whatever its backoff, and the child is created
 * again.
 */
export class StaleOwners {
  private readonly marks = new Map<QueueKey, StaleMark>();

  constructor(private readonly context: LiveReader & Pick<ReconcileContext, 'objects'>) {}

  /**
   * Marks an object for which the server refused a write with Conflict or NotFound: the next reconcile has to
   * verify it first.
   */
  mark(ref: ObjectRef): void {
    const uid = this.context.objects.get(ref)?.object.metadata.uid;
    if (uid !== undefined) this.marks.set(objectKey(ref), { uid });
  }

  /**
   * Compares a marked object with the server, and removes the mark if they agree. Does nothing for other
   * objects.
   *
   * @throws ApiError `Conflict` when the server does not have the cached object, or is deleting it and the
   * cache does not show that; TransportError
   */
  async verify(ref: ObjectRef): Promise<void> {
    const key = objectKey(ref);
    const doubt = this.marks.get(key);
    if (doubt === undefined) return;
    const { uid } = doubt;
    const before = this.cached(ref, uid);
    const live = before && (await getLiveMetadata(this.context, before));
    // Read again: the event may have arrived meanwhile.
    const cached = before && this.cached(ref, uid);
    if (cached !== undefined) verifyOwner(this.context.kind, cached, live);
    // A mark that another refusal has set meanwhile stays.
    if (this.marks.get(key) === doubt) this.marks.delete(key);
  }

  private cached(ref: ObjectRef, uid: string): KubeObject | undefined {
    const object = this.context.objects.get(ref)?.object;
    return object?.metadata.uid === uid ? object : undefined;
  }
}
