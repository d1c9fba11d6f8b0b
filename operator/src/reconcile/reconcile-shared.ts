import {
  ADOPT_ANNOTATION,
  ownerReference,
  PAUSED_ANNOTATION,
  SHARED_KEY_ANNOTATION,
} from '../../../constructs/core/envelope';
import type { AnyKind } from '../../../constructs/core/kind';
import type { KubeObject, OwnerReference } from '../../../constructs/core/kube-object';
import { renderShared, sharedKeys, withDefaults } from '../../../constructs/core/render';
import type { RenderedChild } from '../../../constructs/core/render';
import type { Claim } from './claim';
import type { AwaitedName, ReconcileContext } from './context';
import { failureOf, shortfallOf, sumUp } from './shortfall';
import type { Shortfall } from './shortfall';
import { sharedId } from './shared-states';
import type { SharedState } from './shared-states';
import { refOf, writeChild } from './write-child';

/** The children of one shared key, to reconcile. */
export interface SharedTarget {
  readonly group: string;
  readonly namespace: string | undefined;
  readonly key: string;
  /** Every object that names the key, those being deleted included. */
  readonly objects: readonly KubeObject[];
}

/** What a reconcile of a shared key came to. */
export interface SharedResult {
  /** Undefined once nobody names the key, and before the first reconcile with an object that is not paused. */
  readonly state: SharedState | undefined;
  readonly retry: boolean;
  /** Try again after this long, in milliseconds. */
  readonly afterMs?: number;
  /** Children whose names are taken. */
  readonly awaited: readonly AwaitedName[];
}

/**
 * Reconciles the children of a shared key under that key alone: their body is a function of it, their owner references are all living
 * objects that name it. With none left they are deleted, unless the last one went with `--cascade=orphan`. A living object that holds
 * them, but whose spec does not tell which key it names, goes on holding them. While all that hold them are paused, they are left as they are.
 *
 * @throws ApiError, TransportError when the cache was behind or the server is away
 */
export async function reconcileShared(context: ReconcileContext, target: SharedTarget): Promise<SharedResult> {
  const group = context.kind.shared.find(({ name }) => name === target.group);
  if (group === undefined) return { state: undefined, retry: false, awaited: [] };
  const children = renderShared(context.kind, group, target.key, target.namespace);
  const named = target.objects.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const living = [...named, ...undecided(context, children, named)].sort(byName);
  if (living.length === 0) {
    const orphaned = target.objects.some(({ metadata }) => metadata.finalizers?.includes('orphan'));
    if (!orphaned) for (const child of children) await remove(context, child);
    return { state: undefined, retry: false, awaited: [] };
  }
  if (living.every(isPaused)) {
    // The state as it was: what goes on again before its children have been looked at must not take them for applied if they never were.
    const state = context.shared.get(sharedId(target.group, target.namespace, target.key));
    return { state, retry: false, awaited: [] };
  }
  const failures: Shortfall[] = [];
  for (const child of children) {
    const failure = await apply(context, target, child, living);
    if (failure !== undefined) failures.push(failure);
  }
  const { verdict, ...rest } = sumUp(failures);
  return { state: verdict === undefined ? { state: 'applied' } : { state: 'failed', verdict }, ...rest };
}

async function apply(
  context: ReconcileContext,
  target: SharedTarget,
  child: RenderedChild,
  living: readonly KubeObject[],
): Promise<Shortfall | undefined> {
  const { kind } = context;
  const { type, manifest } = child;
  const ref = refOf(manifest);
  const ownerReferences = living.map(ownerReference);
  const wanted = new Set(ownerReferences.map(({ uid }) => uid));
  const adopt = living.some(({ metadata }) => metadata.annotations?.[ADOPT_ANNOTATION] === 'true');
  let because: string | undefined;
  try {
    const outcome = await writeChild({
      client: context.client,
      cache: context.children(type),
      child,
      envelope: { ownerReferences, sharedKey: `${kind.crdName}/${target.group}/${target.key}` },
      contests: context.contests,
      shapes: context.shapes,
      claim: (live) => sharedClaim(kind, live, adopt),
      strayOwners: (live) => holders(kind, live).some(({ uid }) => !wanted.has(uid)),
      onDrift: (path) => (because = path),
    });
    const shortfall = shortfallOf(kind.kind, child, outcome, (reason) => {
      for (const object of living) context.record(object, { type: 'Warning', action: 'Apply', ...reason });
    });
    if (outcome.result === 'created' || outcome.result === 'applied') {
      const owner = `${kind.kind} ${target.group} "${target.key}"`;
      context.onWrite({ owner, type, ref, action: outcome.result, because });
    }
    return shortfall;
  } catch (error) {
    return failureOf(child, error);
  }
}

/** The living objects that hold one of the children and do not say which key they name: their spec does not fit any more. */
function undecided(
  { kind, objects, children: cacheOf }: ReconcileContext,
  children: readonly RenderedChild[],
  named: readonly KubeObject[],
): readonly KubeObject[] {
  const known = new Set(named.map(({ metadata }) => metadata.uid));
  const held = children.flatMap(({ type, manifest }) => cacheOf(type).get(refOf(manifest))?.object ?? []);
  const others = held.flatMap((live) =>
    holders(kind, live)
      .filter(({ uid }) => !known.has(uid))
      .map(({ uid, name }) => ({ uid, ref: { ...refOf(live), name } })),
  );
  const standing = others.flatMap(({ uid, ref }) => {
    const object = objects.get(ref)?.object;
    return object?.metadata.uid === uid ? [object] : [];
  });
  return [...new Set(standing)].filter(
    (object) => object.metadata.deletionTimestamp === undefined && !saysItsKeys(kind, object),
  );
}

function saysItsKeys(kind: AnyKind, object: KubeObject): boolean {
  try {
    sharedKeys(kind, withDefaults(kind, object));
    return true;
  } catch {
    return false;
  }
}

function isPaused({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[PAUSED_ANNOTATION] === 'true';
}

/** The order of owner references is part of what is applied. */
function byName({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  return a.name < b.name ? -1 : 1;
}

/** The owner references to objects of the kind that stand in a shared child. */
function holders(kind: AnyKind, live: KubeObject): readonly OwnerReference[] {
  const group = `${kind.group}/`;
  return (live.metadata.ownerReferences ?? []).filter(
    (reference) => reference.kind === kind.kind && reference.apiVersion.startsWith(group),
  );
}

function sharedClaim(kind: AnyKind, live: KubeObject, adopt: boolean): Claim {
  const controlled = live.metadata.ownerReferences?.some(({ controller }) => controller === true) === true;
  if (controlled) return 'foreign';
  const held = holders(kind, live).length > 0 && live.metadata.annotations?.[SHARED_KEY_ANNOTATION] !== undefined;
  return held || adopt ? 'ours' : 'foreign';
}

/** Both preconditions: nobody may have begun to hold it since. */
async function remove(context: ReconcileContext, { type, manifest }: RenderedChild): Promise<void> {
  const ref = refOf(manifest);
  const live = context.children(type).get(ref)?.object;
  if (live === undefined || live.metadata.deletionTimestamp !== undefined) return;
  if (sharedClaim(context.kind, live, false) !== 'ours') return;
  const { uid, resourceVersion } = live.metadata;
  await context.client.delete(type, ref, { uid, resourceVersion, propagation: 'Background' });
  context.onWrite({ owner: `${context.kind.kind} (shared)`, type, ref, action: 'deleted' });
}
