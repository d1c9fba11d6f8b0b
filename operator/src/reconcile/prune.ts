import { childTypes } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { RenderedChild } from '../../../constructs/kind/render';
import { typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import { describeObject } from '../../../constructs/kind/validate';
import type { ReconcileContext } from './context';
import { heldBack } from './held-back';
import { addressOf, refOf } from './object-ref';
import type { Shortfall } from './shortfall';

/** A live child of an object. */
export interface LiveChild {
  readonly type: ResourceType;
  readonly live: KubeObject;
}

/** What came of deleting children. */
export interface Pruned {
  /** Children that somebody else makes again and again. */
  readonly shortfalls: readonly Shortfall[];
  /** What is not gone yet: a finalizer holds it, or it is contested. Its events tell of its end. */
  readonly standing: readonly LiveChild[];
}

/**
 * The live children that an object controls.
 *
 * @param types default: every type its kind owns or owned
 */
export function controlledChildren(
  context: ReconcileContext,
  owner: KubeObject,
  types: readonly ResourceType[] = childTypes(context.kind),
): readonly LiveChild[] {
  const { uid } = owner.metadata;
  if (uid === undefined) return [];
  const existing = types.filter((type) => !context.isMissing(type));
  return existing.flatMap((type) =>
    context
      .children(type)
      .byOwner(uid)
      .filter(({ object }) => object.metadata.ownerReferences?.some((o) => o.controller === true && o.uid === uid))
      .map(({ object }) => ({ type, live: object })),
  );
}

/**
 * Deletes what an object controls and no longer renders, each with its UID and resourceVersion as preconditions. What somebody else makes again
 * and again is deleted ever more slowly.
 *
 * @param only limits the pruning to these types
 * @throws ApiError, TransportError
 */
export async function prune(
  context: ReconcileContext,
  owner: KubeObject,
  rendered: readonly RenderedChild[],
  only?: readonly ResourceType[],
): Promise<Pruned> {
  const keep = new Set(rendered.map(({ type, manifest }) => `${typeKey(type)}/${manifest.metadata.name}`));
  const unwanted = controlledChildren(context, owner, only).filter(
    ({ type, live }) => !keep.has(`${typeKey(type)}/${live.metadata.name}`),
  );
  return deleteChildren(context, owner, unwanted, 'Background');
}

/**
 * Deletes children of an object.
 *
 * @throws ApiError `Conflict` when the cache was behind; TransportError
 */
export async function deleteChildren(
  context: ReconcileContext,
  owner: KubeObject,
  children: readonly LiveChild[],
  propagation: 'Background' | 'Foreground',
): Promise<Pruned> {
  const shortfalls: Shortfall[] = [];
  const standing: LiveChild[] = [];
  for (const child of children) {
    const { deletionTimestamp, finalizers = [] } = child.live.metadata;
    const isGoing = deletionTimestamp !== undefined;
    const shortfall = isGoing ? undefined : await deleteChild(context, owner, child, propagation);
    if (shortfall !== undefined) shortfalls.push(shortfall);
    if (isGoing || shortfall !== undefined || finalizers.length > 0) standing.push(child);
  }
  return { shortfalls, standing };
}

/**
 * Deletes one child, unless it was replaced or changed meanwhile: its owner reference may be gone, which with `--cascade=orphan` is heard of
 * through another watch than the end of the orphaning.
 *
 * @returns what is wrong when somebody else has made it again too often
 */
async function deleteChild(
  context: ReconcileContext,
  owner: KubeObject,
  { type, live }: LiveChild,
  propagation: 'Background' | 'Foreground',
): Promise<Shortfall | undefined> {
  const { client, contests } = context;
  const { uid: ownerUid = '' } = owner.metadata;
  const child = addressOf(type, live);
  const before = contests.prunings.before(ownerUid, child, live);
  if (before === 'unheard') return undefined;
  const contest = `${ownerUid} without ${child}`;
  if (before === 'again') {
    const says = (after: string): string =>
      `${type.kind} "${live.metadata.name}": something else creates it as often as it is deleted; it is deleted again ${after}`;
    const held = heldBack(context, owner, { contest, action: 'Delete', says });
    if (held !== undefined)
      return { verdict: { state: 'failing', ...held.reason }, retry: false, afterMs: held.afterMs };
  }
  const ref = refOf(live);
  const { uid, resourceVersion } = live.metadata;
  const isDone = await client.delete(type, ref, { uid, resourceVersion, propagation });
  contests.prunings.pruned(ownerUid, child, live);
  if (!isDone) return undefined;
  if (before === 'again') contests.corrected(contest);
  context.onWrite({ owner: describeObject(owner), type, ref, action: 'deleted' });
  return undefined;
}
