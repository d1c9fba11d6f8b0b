import { KindFunctionError, statusMessage } from '../../constructs/kube/function-error';
import { ownerReference, SHARED_KEY_ANNOTATION } from '../../constructs/kube/envelope';
import type { AnyKind, Reason } from '../../constructs/kind/kind';
import type { KubeObject, OwnerReference } from '../../constructs/kube/kube-object';
import type { SharedChildren } from '../../constructs/kind/kind-props';
import { ImpureError } from '../../constructs/kind/purity';
import { assertPureShared, renderSharedOnce, type RenderedChild } from '../../constructs/kind/render';
import {
  ownerReferencesOf,
  getAllLiveMetadata,
  hasOrphanFinalizer,
  isPaused,
  verifyOwner,
  sharedClaim,
  staleCacheError,
} from '../apply/ownership';
import type { AwaitedName, ReconcileContext } from './context';
import { refOf } from '../client/api-client';
import { serviceAccountProblem, missingAccounts, splitAccounts } from './apply-children';
import { problemOfError, problemOfOutcome, combineProblems, problemOfMissingType, type ChildProblem } from './problems';
import { sharedId, sharedKeysOf, type SharedState } from './shared-keys';
import { writeChild } from '../apply/write-child';

/** The children of one shared key, to reconcile. */
export interface SharedTarget {
  readonly group: string;
  readonly namespace: string | undefined;
  readonly key: string;
  /** Every object that names the key, those being deleted included. */
  readonly objects: readonly KubeObject[];
}

/** The result of reconciling a shared key. */
export interface SharedResult {
  /**
   * Undefined once no object names the key, and before the first reconcile with an object that is not paused.
   */
  readonly state: SharedState | undefined;
  readonly retry: boolean;
  /** Try again after this long, in milliseconds. */
  readonly requeueAfterMs?: number;
  /** Children whose names are taken. */
  readonly awaited: readonly AwaitedName[];
  /** Why its children cannot be rendered. */
  readonly failed?: Reason;
  /** What a function of the kind threw. */
  readonly thrown?: KindFunctionError;
}

/**
 * Reconciles the children of a shared key under that key alone: their body is a function of the key, their
 * owners are all objects that name it and are not being deleted. When none is left, the children are deleted,
 * unless the last one was deleted with `--cascade=orphan`. An object that owns them, but whose spec does not
 * tell which key it names, stays an owner. While all owners are paused, the children are left as they are.
 *
 * @throws ApiError, TransportError when the cache was behind or the server is unreachable; NotLeaderError
 */
export async function reconcileShared(context: ReconcileContext, target: SharedTarget): Promise<SharedResult> {
  const group = context.kind.shared.find(({ name }) => name === target.group);
  if (group === undefined) return { state: undefined, retry: false, awaited: [] };
  let children: readonly RenderedChild[];
  try {
    children = renderTarget(context, group, target);
  } catch (error) {
    const failed = renderErrorResult(error);
    if (target.objects.length > 0) return failed;
    // The children are a function of the key, so a retry cannot help; an operator that can render them finds
    // those that exist.
    context.driftBackoff.setDesiredChildren(sharedOwnerKey(target), () => []);
    return { ...failed, state: undefined };
  }
  const named = target.objects.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const living = [...named, ...ownersWithUnknownKeys(context, children, named)].sort(byName);
  if (living.length === 0) {
    context.driftBackoff.setDesiredChildren(sharedOwnerKey(target), () => []);
    const orphaned = target.objects.some(hasOrphanFinalizer);
    if (!orphaned) await deleteSharedChildren(context, target, children);
    return { state: undefined, retry: false, awaited: [] };
  }
  if (living.every(isPaused)) {
    // The state stays as it was: an object that is unpaused before its shared children are reconciled must
    // not take them for applied if they never were.
    const state = context.shared.get(sharedOwnerKey(target));
    return { state, retry: false, awaited: [] };
  }
  const failures: ChildProblem[] = [];
  const joining = new OwnerVerifier(context, living);
  const { accounts, others } = splitAccounts(children);
  for (const account of accounts) failures.push(...(await applySharedChild(context, target, account, joining)));
  const missing = missingAccounts(context, accounts, (live) => sharedClaim(context.kind, live) === 'ours');
  for (const child of others) {
    const held = serviceAccountProblem(child, missing);
    failures.push(...(held === undefined ? await applySharedChild(context, target, child, joining) : [held]));
  }
  const { readiness, ...rest } = combineProblems(failures);
  if (readiness === undefined) return { state: { state: 'applied' }, ...rest };
  return { state: { state: 'failed', readiness, ...(missing.length > 0 && { missingAccounts: missing }) }, ...rest };
}

/** Renders the children of a shared key: the first time twice, to find out what depends on anything but the key. */
function renderTarget(
  { kind, limits }: ReconcileContext,
  group: SharedChildren<never>,
  target: SharedTarget,
): readonly RenderedChild[] {
  const { key, namespace } = target;
  const shared = { group, key, namespace };
  const calls = limits.ofShared(sharedOwnerKey(target));
  const children = calls.run('shared', () => renderSharedOnce(kind, shared));
  calls.compareOnce('comparison', () => assertPureShared(kind, shared, children));
  return children;
}

function renderErrorResult(error: unknown): SharedResult {
  const failed = {
    reason: error instanceof ImpureError ? 'ErrImpure' : 'ErrRender',
    message: statusMessage(error),
  };
  const thrown = error instanceof KindFunctionError ? { thrown: error } : {};
  const state = { state: 'failed', readiness: { state: 'stalled', ...failed } } as const;
  return { state, retry: false, awaited: [], failed, ...thrown };
}

/**
 * The owners of the children that do not say which key they name, because their spec is no longer valid; not
 * those being deleted.
 */
function ownersWithUnknownKeys(
  context: ReconcileContext,
  children: readonly RenderedChild[],
  named: readonly KubeObject[],
): readonly KubeObject[] {
  const { kind, objects, children: cacheOf } = context;
  const known = new Set(named.map(({ metadata }) => metadata.uid));
  const held = children.flatMap(({ type, manifest }) => cacheOf(type).get(refOf(manifest))?.object ?? []);
  const others = held.flatMap((live) =>
    ownerReferencesOf(kind, live)
      .filter(({ uid }) => !known.has(uid))
      .map(({ uid, name }) => ({ uid, ref: { ...refOf(live), name } })),
  );
  const standing = others.flatMap(({ uid, ref }) => {
    const object = objects.get(ref)?.object;
    return object?.metadata.uid === uid ? [object] : [];
  });
  return [...new Set(standing)].filter(
    (object) => object.metadata.deletionTimestamp === undefined && !hasKnownKeys(context, object),
  );
}

function hasKnownKeys({ kind, limits }: ReconcileContext, object: KubeObject): boolean {
  try {
    sharedKeysOf(kind, limits, object);
    return true;
  } catch {
    return false;
  }
}

/** The order of owner references is part of what is applied. */
function byName({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  return a.name < b.name ? -1 : 1;
}

/** The key owns the children, no matter which objects share it at the moment. */
function sharedOwnerKey({ group, namespace, key }: SharedTarget): string {
  return sharedId(group, namespace, key);
}

/**
 * The owners of a shared key. Those that a child does not reference yet are read from the server before they
 * are added, once for all children.
 */
class OwnerVerifier {
  private readonly verified = new Set<KubeObject>();

  constructor(
    private readonly context: ReconcileContext,
    readonly living: readonly KubeObject[],
  ) {}

  /**
   * With `--cascade=orphan` the garbage collector removes an owner from the children, and their watch may
   * report that before the owner's watch reports its deletion. If the owner were added again, the children
   * would be deleted with it once it is the last one.
   *
   * @throws ApiError `Conflict` when an owner that is not in the child was deleted, or is being deleted, and
   * the cache does not show that
   */
  async verifyMissingOwners(live: KubeObject): Promise<void> {
    const { context, living, verified: looked } = this;
    const held = new Set(live.metadata.ownerReferences?.map(({ uid }) => uid));
    const owners = living.filter((owner) => !held.has(owner.metadata.uid ?? '') && !looked.has(owner));
    const found = await getAllLiveMetadata(context, owners);
    for (const [i, owner] of owners.entries()) {
      verifyOwner(context.kind, owner, found[i]);
      looked.add(owner);
    }
  }
}

async function applySharedChild(
  context: ReconcileContext,
  target: SharedTarget,
  child: RenderedChild,
  joining: OwnerVerifier,
): Promise<readonly ChildProblem[]> {
  const { kind } = context;
  const { living } = joining;
  const { type, manifest } = child;
  const ref = refOf(manifest);
  const ownerReferences = living.map(ownerReference);
  const wanted = new Set(ownerReferences.map(({ uid }) => uid));
  const warn = (reason: Reason): void => {
    for (const object of living) context.record(object, { type: 'Warning', action: 'Apply', ...reason });
  };
  if (context.isMissing(type)) return [problemOfMissingType(child, warn)];
  let because: string | undefined;
  try {
    const outcome = await writeChild({
      client: context.client,
      cache: context.children(type),
      child,
      envelope: { ownerReferences, sharedKey: `${kind.crdName}/${target.group}/${target.key}` },
      driftBackoff: context.driftBackoff,
      ownerKey: sharedOwnerKey(target),
      projection: context.projection,
      claim: (live) => sharedClaim(kind, live),
      beforeAddingOwner: (live) => joining.verifyMissingOwners(live),
      hasStrayOwners: (live) => ownerReferencesOf(kind, live).some(({ uid }) => !wanted.has(uid)),
      onDrift: (path) => (because = path),
    });
    const problem = problemOfOutcome({ kind, owners: living }, child, outcome, warn);
    if (outcome.result === 'created' || outcome.result === 'applied') {
      const owner = `${kind.kind} ${target.group} "${target.key}"`;
      context.onWrite({ owner, type, ref, action: outcome.result, because });
    }
    return problem === undefined ? [] : [problem];
  } catch (error) {
    return [problemOfError(child, error, context.children(type).get(ref) !== undefined)];
  }
}

/**
 * Deletes the children of a key that no object names, each with both preconditions: an object may have begun
 * to share it since.
 */
async function deleteSharedChildren(
  context: ReconcileContext,
  target: SharedTarget,
  children: readonly RenderedChild[],
): Promise<void> {
  const { kind } = context;
  const standing = children.flatMap(({ type, manifest }) => {
    const live = context.isMissing(type) ? undefined : context.children(type).get(refOf(manifest))?.object;
    if (live === undefined || sharedClaim(kind, live) !== 'ours' || !isRemovable(kind, live)) return [];
    return [{ type, live }];
  });
  const references = standing.flatMap(({ live }) => ownerReferencesOf(kind, live));
  await verifyNoUncachedOwner(context, target, references);
  for (const { type, live } of standing) {
    const ref = refOf(live);
    const { uid, resourceVersion } = live.metadata;
    await context.client.delete(type, ref, { uid, resourceVersion, propagation: 'Background' });
    context.onWrite({ owner: `${kind.kind} (shared)`, type, ref, action: 'deleted' });
  }
}

/**
 * Whether a shared child may be deleted. Only objects with the annotation were created under a key: an object
 * that a person has made ours is overwritten, but never deleted.
 */
function isRemovable(kind: AnyKind, { metadata }: KubeObject): boolean {
  return metadata.annotations?.[SHARED_KEY_ANNOTATION] !== undefined && metadata.deletionTimestamp === undefined;
}

/**
 * Makes sure that owners that are not in the cache do not exist: perhaps only their events have not arrived
 * yet.
 */
async function verifyNoUncachedOwner(
  context: ReconcileContext,
  { namespace }: SharedTarget,
  references: readonly OwnerReference[],
): Promise<void> {
  const { kind, objects } = context;
  const byUid = new Map(references.map(({ uid, name }) => [uid, { metadata: { name, namespace } }] as const));
  const unknown = [...byUid].filter(([uid, { metadata }]) => {
    const { name } = metadata;
    const known = objects.get(namespace === undefined ? { name } : { name, namespace });
    return known?.object.metadata.uid !== uid;
  });
  const found = await getAllLiveMetadata(
    context,
    unknown.map(([, named]) => named),
  );
  for (const [i, [uid, { metadata }]] of unknown.entries()) {
    if (found[i]?.metadata.uid === uid) throw staleCacheError(kind.plural, metadata.name, 'stands');
  }
}
