import { FORCE_REMOVE_ANNOTATION, PAUSED_ANNOTATION, RECONCILE_AT_ANNOTATION } from '../../constructs/kube/envelope';
import { InvalidObjectError } from '../../constructs/kube/errors';
import type { AnyKind, CommonStatus } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { Finalizer } from '../../constructs/kind/kind-props';
import { withDefaults } from '../../constructs/kind/render';
import { ApiError } from '../client/errors';
import type { Verdict } from '../status/conditions';
import type { Effects, EffectsFound, Next, ReconcileContext } from './context';
import { ReconcileError, classify, heldBack, sumUp, withHeldStatus, type HeldBack } from './problems';
import { isForced, isPaused, isToBeOrphaned } from '../apply/ownership';
import { controlledChildren, deleteChildren, type LiveChild } from './prune';
import { refOf } from '../client/api-client';
import { ownStatus, writeStatus, type StatusWrite } from './write-status';

const TRY_AGAIN = `Change the annotation ${RECONCILE_AT_ANNOTATION} to try again.`;

/** A deletion that waits for its object to be unpaused. */
const PAUSED_DELETION: Verdict = {
  state: 'paused',
  reason: 'Paused',
  message: `The deletion is paused, and nothing is taken away: remove the annotation ${PAUSED_ANNOTATION} to go on with it.`,
};

/** That of `--cascade=foreground`. Source: `metav1.FinalizerDeleteDependents`. */
const FOREGROUND = 'foregroundDeletion';

/** What came of looking for a finalizer. */
export type Ensured = { readonly object: KubeObject } | { readonly held: HeldBack };

/**
 * Puts the kind's finalizer on an object that lacks it. Where somebody else takes it off again and again, it is put on ever more slowly.
 *
 * @returns the object as it stands then
 * @throws ApiError, TransportError
 */
export async function ensureFinalizer(context: ReconcileContext, object: KubeObject): Promise<Ensured> {
  const { finalizer } = context.kind;
  const { finalizers = [], uid = '' } = object.metadata;
  if (finalizer === undefined || finalizers.includes(finalizer.name)) return { object };
  const { name } = finalizer;
  const contest = `finalizer ${uid}`;
  const says = (after: string): string =>
    `the finalizer ${name} is taken off by somebody else as often as it is put on; it is put on again ${after}, and nothing is made without it`;
  const held = heldBack(context, object, { contest, action: 'Apply', says });
  if (held !== undefined) return { held };
  const answer = await setFinalizers(context, object, [...finalizers, name]);
  // Whoever has a status has had the finalizer.
  if ((object.status as CommonStatus | undefined)?.observedGeneration !== undefined)
    context.contests.corrected(contest);
  return { object: answer };
}

/**
 * Cleans up after an object that is being deleted: its children first, then the kind's finalizer. Nothing is ever applied. A
 * clean-up that fails keeps the finalizer and says why in `Ready`, which also tells what an object waits for that is not gone yet. Where a kind has
 * effects, the clean-up is spaced like their attempts, and given up once it was refused too often; and nothing is done while the object is paused.
 *
 * @throws ApiError, TransportError when the cache was behind, the server is away, or the status cannot be written; NotLeaderError
 */
export async function finalize(context: ReconcileContext, object: KubeObject): Promise<Next> {
  const { finalizer } = context.kind;
  const { finalizers = [] } = object.metadata;
  if (finalizer === undefined || !finalizers.includes(finalizer.name))
    return reportTerminating(context, object, awaitedByCollector(context, object));
  try {
    const next = await cleanUp(context, object, finalizer);
    context.effects?.cleanupWentOn(object);
    return next;
  } catch (error) {
    return cleanupFailed(context, object, error);
  }
}

async function cleanUp(context: ReconcileContext, object: KubeObject, finalizer: Finalizer): Promise<Next> {
  const { finalizers = [] } = object.metadata;
  const { effects } = context;
  const isOrphaned = isToBeOrphaned(object) || (!isForced(object) && (await effects?.isOrphaned(object)) === true);
  // Children alone are no reason to wait: without a finalizer, the garbage collector would not either.
  if (effects !== undefined && isPaused(object) && !isForced(object) && !isOrphaned)
    return pausedDeletion(context, object);
  // With --cascade=orphan the children are to stay.
  if (!isOrphaned) {
    const children = controlledChildren(context, object);
    const { shortfalls } = await deleteChildren(context, object, children, finalizer.propagation);
    const { verdict, afterMs } = sumUp(shortfalls);
    if (verdict !== undefined) return reportOpen(context, { object, verdict, observed: {} }, afterMs);
    // Those that were just deleted may be gone the next moment.
    const going = children.filter(({ live }) => live.metadata.deletionTimestamp !== undefined);
    if (going.length > 0) return reportTerminating(context, object, going);
    if (children.length > 0) return { next: 'wait' };
  }
  const open = isOrphaned ? await orphan(context, object) : await takeAway(context, object);
  if (open !== undefined) return open;
  await letStateGo(context, object);
  await setFinalizers(
    context,
    object,
    finalizers.filter((name) => name !== finalizer.name),
  );
  return { next: 'wait' };
}

async function pausedDeletion(context: ReconcileContext, object: KubeObject): Promise<Next> {
  const { reason, message } = PAUSED_DELETION;
  const { conditions = [] } = (object.status ?? {}) as CommonStatus;
  const isTold = conditions.some((condition) => condition.type === 'Ready' && condition.message === message);
  if (!isTold) context.record(object, { type: 'Normal', action: 'Delete', reason, message });
  return reportOpen(context, { object, verdict: PAUSED_DELETION, observed: {} }, undefined);
}

/** Lets what the kind's effects did stay. @returns what comes next while a run is under way */
async function orphan(context: ReconcileContext, object: KubeObject): Promise<Next | undefined> {
  if (isForced(object)) return undefined;
  const verdict = await context.effects?.orphan(object);
  return verdict === undefined ? undefined : reportOpen(context, { object, verdict, observed: {} }, undefined);
}

/**
 * Takes away what the kind's effects did outside the API.
 *
 * @returns what comes next while that is not done
 */
async function takeAway(context: ReconcileContext, object: KubeObject): Promise<Next | undefined> {
  const { effects, kind } = context;
  if (effects === undefined || isForced(object)) return undefined;
  const { verdict, status = {}, conditions, afterMs } = await removal(effects, kind, object);
  if (verdict === undefined) return undefined;
  return reportOpen(context, { object, verdict, observed: status, ...(conditions && { conditions }) }, afterMs);
}

/** Before the object's own finalizer is dropped: nobody would do it afterwards. */
async function letStateGo({ effects }: ReconcileContext, object: KubeObject): Promise<void> {
  try {
    await effects?.release(object);
  } catch (error) {
    // Who is to go as he is goes, whatever the server says of his state.
    if (!isForced(object) || !(error instanceof ApiError) || error.code === 409) throw error;
  }
}

/** The children that the garbage collector deletes before the object, if that was asked for. */
function awaitedByCollector(context: ReconcileContext, object: KubeObject): readonly LiveChild[] {
  return object.metadata.finalizers?.includes(FOREGROUND) === true ? controlledChildren(context, object) : [];
}

/**
 * Says that an object is being deleted, which of its children still exist, and whose finalizers they and the object bear. With `--cascade=orphan` it
 * says nothing: the garbage collector is done at once.
 */
async function reportTerminating(
  context: ReconcileContext,
  object: KubeObject,
  children: readonly LiveChild[],
): Promise<Next> {
  const { finalizers = [] } = object.metadata;
  if (isToBeOrphaned(object)) return { next: 'wait' };
  // Ours is dropped when the children are gone, and so is the garbage collector's.
  const waiting = children.length === 0 ? [] : [context.kind.finalizer?.name, FOREGROUND];
  const others = finalizers.filter((name) => !waiting.includes(name));
  const reasons = [
    ...children.map(({ type, live: { metadata } }) => `${type.kind} "${metadata.name}"${held(metadata.finalizers)}`),
    ...(others.length > 0 ? [`its own finalizers: ${others.map(explained).join(', ')}`] : []),
  ];
  if (reasons.length === 0) return { next: 'wait' };
  const message = `It is being deleted and waits for ${reasons.join('; ')}.`;
  return reportOpen(
    context,
    { object, verdict: { state: 'progressing', reason: 'Terminating', message }, observed: {} },
    undefined,
  );
}

function held(finalizers: readonly string[] = []): string {
  return finalizers.length === 0 ? '' : `, which its finalizers hold: ${finalizers.map(explained).join(', ')}`;
}

function explained(finalizer: string): string {
  return finalizer === FOREGROUND ? `${finalizer} (the garbage collector's: what it owns goes first)` : finalizer;
}

/** Says why an object does not go yet. */
async function reportOpen(context: ReconcileContext, write: StatusWrite, afterMs: number | undefined): Promise<Next> {
  const { object, verdict } = write;
  const observed = { ...ownStatus(context.kind, object), ...write.observed };
  const held = await writeStatus(context, { ...write, observed });
  const { reason, message } = verdict;
  const bad = verdict.state === 'failing' || verdict.state === 'stalled';
  const next: Next = {
    next: 'wait',
    ...(bad ? { failed: { reason, message } } : {}),
    ...(afterMs === undefined ? {} : { afterMs }),
  };
  return withHeldStatus(next, held);
}

async function removal(effects: Effects, kind: AnyKind, object: KubeObject): Promise<Partial<EffectsFound>> {
  try {
    if (!(await effects.wasBegun(object))) return {};
    return await effects.advance(object, withDefaults(kind, object), 'remove');
  } catch (error) {
    // Both are hopeless: a state that is lost, and a spec that an older schema let through.
    if (!(error instanceof ReconcileError) && !(error instanceof InvalidObjectError)) throw error;
    const reason = error instanceof ReconcileError ? error.reason : 'ErrInvalidSpec';
    const help = `The annotation ${FORCE_REMOVE_ANNOTATION}: "true" lets the object go as it is.`;
    const verdict: Verdict = { state: 'stalled', reason, message: `${error.message} ${help}` };
    // A change of the spec wakes the object; a state that is put back does not.
    return error instanceof ReconcileError && error.afterMs !== undefined
      ? { verdict, afterMs: error.afterMs }
      : { verdict };
  }
}

async function cleanupFailed(context: ReconcileContext, object: KubeObject, error: unknown): Promise<Next> {
  const failure = classify(error);
  if (failure.kind === 'stale') throw error;
  const { effects } = context;
  const afterMs = effects?.cleanupFailed(object, isServersFailure(error) ? 'unavailable' : 'refused');
  const isLast = effects !== undefined && afterMs === undefined;
  const message = isLast
    ? `The clean-up failed too often: ${failure.message}. ${TRY_AGAIN}`
    : `The clean-up failed and is tried again: ${failure.message}`;
  const reason = { reason: 'ErrCleanup', message };
  context.record(object, { type: 'Warning', action: 'Delete', ...reason });
  const verdict: Verdict = { state: isLast ? 'stalled' : 'failing', ...reason };
  let held: HeldBack | undefined;
  try {
    held = await writeStatus(context, { object, verdict, observed: ownStatus(context.kind, object) });
  } catch (unsaid) {
    // A server that fails altogether takes no status either. The log says why, and the next attempt keeps its delay.
    if (afterMs === undefined || !isServersFailure(unsaid)) throw unsaid;
  }
  if (effects === undefined) return { next: 'retry', failed: reason };
  return withHeldStatus({ next: 'wait', failed: reason, ...(afterMs === undefined ? {} : { afterMs }) }, held);
}

/** The server, or a webhook that it asked, could not do its work, or has too much of it: that is none of the object's. */
function isServersFailure(error: unknown): boolean {
  return error instanceof ApiError && (error.code >= 500 || error.code === 429);
}

/** The resourceVersion is the precondition: nobody else's finalizer is lost. */
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
