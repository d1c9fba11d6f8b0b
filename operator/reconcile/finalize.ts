import { FORCE_REMOVE_ANNOTATION, PAUSED_ANNOTATION, RECONCILE_AT_ANNOTATION } from '../../constructs/kube/envelope';
import { InvalidObjectError } from '../../constructs/kube/errors';
import type { AnyKind, CommonStatus } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { Finalizer } from '../../constructs/kind/kind-props';
import { withDefaults } from '../../constructs/kind/render';
import { ApiError } from '../client/errors';
import type { Readiness } from '../status/conditions';
import type { Effects, EffectsResult, ReconcileResult, ReconcileContext } from './context';
import { ReconcileError, classify, checkBackoff, combineProblems, withStatusBackoff, type BackedOff } from './problems';
import { isForceRemoved, isPaused, hasOrphanFinalizer } from '../apply/ownership';
import { controlledChildren, deleteChildren, type LiveChild } from './prune';
import { refOf } from '../client/api-client';
import { ownStatus, writeStatus, type StatusWrite } from './write-status';

const TRY_AGAIN = `Change the annotation ${RECONCILE_AT_ANNOTATION} to try again.`;

/** The readiness of an object whose deletion is paused. */
const PAUSED_DELETION: Readiness = {
  state: 'paused',
  reason: 'Paused',
  message: `The deletion is paused, and nothing is taken away: remove the annotation ${PAUSED_ANNOTATION} to go on with it.`,
};

/**
 * The garbage collector's finalizer for `--cascade=foreground`. Source: `metav1.FinalizerDeleteDependents`.
 */
const FOREGROUND = 'foregroundDeletion';

/** The object with its finalizer, or why setting that has to wait. */
export type EnsureFinalizerResult = { readonly object: KubeObject } | { readonly held: BackedOff };

/**
 * Adds the kind's finalizer to an object that lacks it. If somebody else removes it repeatedly, adding it
 * again is delayed longer each time.
 *
 * @returns the object after the write
 * @throws ApiError, TransportError
 */
export async function ensureFinalizer(context: ReconcileContext, object: KubeObject): Promise<EnsureFinalizerResult> {
  const { finalizer } = context.kind;
  const { finalizers = [], uid = '' } = object.metadata;
  if (finalizer === undefined || finalizers.includes(finalizer.name)) return { object };
  const { name } = finalizer;
  const backoffKey = `finalizer ${uid}`;
  const says = (after: string): string =>
    `the finalizer ${name} is taken off by somebody else as often as it is put on; it is put on again ${after}, and nothing is made without it`;
  const held = checkBackoff(context, object, { backoffKey, action: 'Apply', describe: says });
  if (held !== undefined) return { held };
  const answer = await setFinalizers(context, object, [...finalizers, name]);
  // An object that has a status has had the finalizer before.
  if ((object.status as CommonStatus | undefined)?.observedGeneration !== undefined)
    context.driftBackoff.recordCorrection(backoffKey);
  return { object: answer };
}

/**
 * Writes the finalizers, with the resourceVersion as precondition, so that nobody else's finalizer is lost.
 */
async function setFinalizers(
  context: ReconcileContext,
  object: KubeObject,
  finalizers: readonly string[],
): Promise<KubeObject> {
  const { resourceVersion } = object.metadata;
  const body = { metadata: { resourceVersion, finalizers } };
  const ref = refOf(object);
  return context.objects.trackWrite(ref, () =>
    context.client.patch(context.kind.type, ref, body, { type: 'merge', fieldManager: 'kindred-finalizer' }),
  );
}

/**
 * Cleans up after an object that is being deleted: deletes its children, then removes the kind's finalizer.
 * Nothing is ever applied. A clean-up that fails keeps the finalizer and reports why in `Ready`, which also
 * says what the deletion waits for. If a kind has effects, clean-ups are spaced like the attempts at effects
 * and stop after too many refusals; and nothing is done while the object is paused.
 *
 * @throws ApiError, TransportError when the cache was behind, the server is unreachable, or the status cannot
 * be written; NotLeaderError
 */
export async function finalize(context: ReconcileContext, object: KubeObject): Promise<ReconcileResult> {
  const { finalizer } = context.kind;
  const { finalizers = [] } = object.metadata;
  if (finalizer === undefined || !finalizers.includes(finalizer.name))
    return reportTerminating(context, object, foregroundDependents(context, object));
  try {
    const next = await cleanUp(context, object, finalizer);
    context.effects?.resetCleanupBackoff(object);
    return next;
  } catch (error) {
    return handleCleanupError(context, object, error);
  }
}

async function cleanUp(context: ReconcileContext, object: KubeObject, finalizer: Finalizer): Promise<ReconcileResult> {
  const { finalizers = [] } = object.metadata;
  const { effects } = context;
  const isOrphaned =
    hasOrphanFinalizer(object) || (!isForceRemoved(object) && (await effects?.isOrphaned(object)) === true);
  // Children alone do not make a paused deletion wait: without a finalizer, the garbage collector would not
  // wait either.
  if (effects !== undefined && isPaused(object) && !isForceRemoved(object) && !isOrphaned)
    return pausedDeletion(context, object);
  // With --cascade=orphan the children stay.
  if (!isOrphaned) {
    const children = controlledChildren(context, object);
    const { problems } = await deleteChildren(context, object, children, finalizer.propagation);
    const { readiness, requeueAfterMs } = combineProblems(problems);
    if (readiness !== undefined) return reportPending(context, { object, readiness, observed: {} }, requeueAfterMs);
    // The children that were deleted just now may no longer exist in a moment.
    const going = children.filter(({ live }) => live.metadata.deletionTimestamp !== undefined);
    if (going.length > 0) return reportTerminating(context, object, going);
    if (children.length > 0) return { action: 'wait' };
  }
  const open = isOrphaned ? await orphanEffects(context, object) : await removeEffects(context, object);
  if (open !== undefined) return open;
  await releaseState(context, object);
  await setFinalizers(
    context,
    object,
    finalizers.filter((name) => name !== finalizer.name),
  );
  return { action: 'wait' };
}

async function pausedDeletion(context: ReconcileContext, object: KubeObject): Promise<ReconcileResult> {
  const { reason, message } = PAUSED_DELETION;
  const { conditions = [] } = (object.status ?? {}) as CommonStatus;
  const isTold = conditions.some((condition) => condition.type === 'Ready' && condition.message === message);
  if (!isTold) context.record(object, { type: 'Normal', action: 'Delete', reason, message });
  return reportPending(context, { object, readiness: PAUSED_DELETION, observed: {} }, undefined);
}

/** Lets the kind's effects stay. @returns the result to end with while an effect is running */
async function orphanEffects(context: ReconcileContext, object: KubeObject): Promise<ReconcileResult | undefined> {
  if (isForceRemoved(object)) return undefined;
  const readiness = await context.effects?.orphan(object);
  return readiness === undefined ? undefined : reportPending(context, { object, readiness, observed: {} }, undefined);
}

/**
 * Undoes what the kind's effects did outside the API.
 *
 * @returns the result to end with while that is not done
 */
async function removeEffects(context: ReconcileContext, object: KubeObject): Promise<ReconcileResult | undefined> {
  const { effects, kind } = context;
  if (effects === undefined || isForceRemoved(object)) return undefined;
  const { readiness, status = {}, conditions, requeueAfterMs } = await reconcileRemoval(effects, kind, object);
  if (readiness === undefined) return undefined;
  return reportPending(
    context,
    { object, readiness, observed: status, ...(conditions && { conditions }) },
    requeueAfterMs,
  );
}

async function reconcileRemoval(effects: Effects, kind: AnyKind, object: KubeObject): Promise<Partial<EffectsResult>> {
  try {
    if (!(await effects.hasStarted(object))) return {};
    return await effects.reconcile(object, withDefaults(kind, object), 'remove');
  } catch (error) {
    // Both are terminal: a lost state, and a spec that an older schema accepted.
    if (!(error instanceof ReconcileError) && !(error instanceof InvalidObjectError)) throw error;
    const reason = error instanceof ReconcileError ? error.reason : 'ErrInvalidSpec';
    const help = `The annotation ${FORCE_REMOVE_ANNOTATION}: "true" lets the object go as it is.`;
    const readiness: Readiness = { state: 'stalled', reason, message: `${error.message} ${help}` };
    // A change of the spec enqueues the object; a restored state does not.
    return error instanceof ReconcileError && error.requeueAfterMs !== undefined
      ? { readiness, requeueAfterMs: error.requeueAfterMs }
      : { readiness };
  }
}

/** Releases the object's state before its own finalizer is removed: nothing would do it afterwards. */
async function releaseState({ effects }: ReconcileContext, object: KubeObject): Promise<void> {
  try {
    await effects?.releaseState(object);
  } catch (error) {
    // A force-removed object is deleted even if the server rejects the write to its state.
    if (!isForceRemoved(object) || !(error instanceof ApiError) || error.code === 409) throw error;
  }
}

/**
 * The children that the garbage collector deletes before the object, if it was deleted with
 * `--cascade=foreground`.
 */
function foregroundDependents(context: ReconcileContext, object: KubeObject): readonly LiveChild[] {
  return object.metadata.finalizers?.includes(FOREGROUND) === true ? controlledChildren(context, object) : [];
}

/**
 * Reports that an object is being deleted, which of its children still exist, and the finalizers of these
 * children and of the object. With `--cascade=orphan` it reports nothing: the garbage collector is done at
 * once.
 */
async function reportTerminating(
  context: ReconcileContext,
  object: KubeObject,
  children: readonly LiveChild[],
): Promise<ReconcileResult> {
  const { finalizers = [] } = object.metadata;
  if (hasOrphanFinalizer(object)) return { action: 'wait' };
  // Our finalizer and the garbage collector's are removed once the children are deleted.
  const waiting = children.length === 0 ? [] : [context.kind.finalizer?.name, FOREGROUND];
  const others = finalizers.filter((name) => !waiting.includes(name));
  const reasons = [
    ...children.map(
      ({ type, live: { metadata } }) => `${type.kind} "${metadata.name}"${describeFinalizers(metadata.finalizers)}`,
    ),
    ...(others.length > 0 ? [`its own finalizers: ${others.map(explained).join(', ')}`] : []),
  ];
  if (reasons.length === 0) return { action: 'wait' };
  const message = `It is being deleted and waits for ${reasons.join('; ')}.`;
  return reportPending(
    context,
    { object, readiness: { state: 'progressing', reason: 'Terminating', message }, observed: {} },
    undefined,
  );
}

function describeFinalizers(finalizers: readonly string[] = []): string {
  return finalizers.length === 0 ? '' : `, which its finalizers hold: ${finalizers.map(explained).join(', ')}`;
}

function explained(finalizer: string): string {
  return finalizer === FOREGROUND ? `${finalizer} (the garbage collector's: what it owns goes first)` : finalizer;
}

/** Reports why an object is not deleted yet. */
async function reportPending(
  context: ReconcileContext,
  write: StatusWrite,
  requeueAfterMs: number | undefined,
): Promise<ReconcileResult> {
  const { object, readiness } = write;
  const observed = { ...ownStatus(context.kind, object), ...write.observed };
  const held = await writeStatus(context, { ...write, observed });
  const { reason, message } = readiness;
  const bad = readiness.state === 'failing' || readiness.state === 'stalled';
  const next: ReconcileResult = {
    action: 'wait',
    ...(bad ? { failed: { reason, message } } : {}),
    ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }),
  };
  return withStatusBackoff(next, held);
}

async function handleCleanupError(
  context: ReconcileContext,
  object: KubeObject,
  error: unknown,
): Promise<ReconcileResult> {
  const failure = classify(error);
  if (failure.kind === 'stale') throw error;
  const { effects } = context;
  const requeueAfterMs = effects?.recordCleanupFailure(object, isServerError(error) ? 'unavailable' : 'refused');
  const isLast = effects !== undefined && requeueAfterMs === undefined;
  const message = isLast
    ? `The clean-up failed too often: ${failure.message}. ${TRY_AGAIN}`
    : `The clean-up failed and is tried again: ${failure.message}`;
  const reason = { reason: 'ErrCleanup', message };
  context.record(object, { type: 'Warning', action: 'Delete', ...reason });
  const readiness: Readiness = { state: isLast ? 'stalled' : 'failing', ...reason };
  let held: BackedOff | undefined;
  try {
    held = await writeStatus(context, { object, readiness, observed: ownStatus(context.kind, object) });
  } catch (unsaid) {
    // A failing server accepts no status either. The log has the reason, and the next attempt keeps its
    // delay.
    if (requeueAfterMs === undefined || !isServerError(unsaid)) throw unsaid;
  }
  if (effects === undefined) return { action: 'retry', failed: reason };
  return withStatusBackoff(
    { action: 'wait', failed: reason, ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }) },
    held,
  );
}

/**
 * Whether the server, or a webhook that it called, failed or is overloaded: that is no fault of the object.
 */
function isServerError(error: unknown): boolean {
  return error instanceof ApiError && (error.code >= 500 || error.code === 429);
}
