import { childTypes } from '../../constructs/kind/kind';
import type { RenderedChild } from '../../constructs/kind/render';
import { describeObject } from '../../constructs/kind/validate';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import { childKey, refOf } from '../client/api-client';
import type { ReconcileContext } from './context';
import { checkBackoff, type ChildProblem } from './problems';

/** A live child of an object. */
export interface LiveChild {
  readonly type: ResourceType;
  readonly live: KubeObject;
}

/** The result of deleting children. */
interface PruneResult {
  /** Children that somebody else creates again repeatedly. */
  readonly problems: readonly ChildProblem[];
  /**
   * Children that still exist, because of a finalizer or because somebody else creates them again. Their
   * events report the deletion.
   */
  readonly remaining: readonly LiveChild[];
}

/**
 * Deletes what an object controls and no longer renders, each with its UID and resourceVersion as
 * preconditions. The deletion of a child that somebody else creates again repeatedly is delayed longer each
 * time.
 *
 * @param only limits the pruning to these types
 * @throws ApiError, TransportError
 */
export async function prune(
  context: ReconcileContext,
  owner: KubeObject,
  rendered: readonly RenderedChild[],
  only?: readonly ResourceType[],
): Promise<PruneResult> {
  const keep = new Set(rendered.map(({ type, manifest }) => `${typeKey(type)}/${manifest.metadata.name}`));
  const unwanted = controlledChildren(context, owner, only).filter(
    ({ type, live }) => !keep.has(`${typeKey(type)}/${live.metadata.name}`),
  );
  return deleteChildren(context, owner, unwanted, 'Background');
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
 * Deletes children of an object.
 *
 * @throws ApiError `Conflict` when the cache was behind; TransportError
 */
export async function deleteChildren(
  context: ReconcileContext,
  owner: KubeObject,
  children: readonly LiveChild[],
  propagation: 'Background' | 'Foreground',
): Promise<PruneResult> {
  const problems: ChildProblem[] = [];
  const standing: LiveChild[] = [];
  for (const child of children) {
    const { deletionTimestamp, finalizers = [] } = child.live.metadata;
    const isGoing = deletionTimestamp !== undefined;
    const problem = isGoing ? undefined : await deleteChild(context, owner, child, propagation);
    if (problem !== undefined) problems.push(problem);
    if (isGoing || problem !== undefined || finalizers.length > 0) standing.push(child);
  }
  return { problems, remaining: standing };
}

/**
 * Deletes one child, unless it was replaced or changed meanwhile: it may have lost its owner reference,
 * because with `--cascade=orphan` the child's watch reports that, and the owner's watch the end of the
 * orphaning.
 *
 * @returns the problem when somebody else has created the child again too often
 */
async function deleteChild(
  context: ReconcileContext,
  owner: KubeObject,
  { type, live }: LiveChild,
  propagation: 'Background' | 'Foreground',
): Promise<ChildProblem | undefined> {
  const { client, driftBackoff } = context;
  const { uid: ownerUid = '' } = owner.metadata;
  const child = childKey(type, live);
  const before = driftBackoff.deletions.priorDeletion(ownerUid, child, live);
  if (before === 'unheard') return undefined;
  const backoffKey = `${ownerUid} without ${child}`;
  if (before === 'again') {
    const says = (after: string): string =>
      `${type.kind} "${live.metadata.name}": something else creates it as often as it is deleted; it is deleted again ${after}`;
    const held = checkBackoff(context, owner, { backoffKey, action: 'Delete', describe: says });
    if (held !== undefined)
      return { readiness: { state: 'failing', ...held.reason }, retry: false, requeueAfterMs: held.requeueAfterMs };
  }
  const ref = refOf(live);
  const { uid, resourceVersion } = live.metadata;
  context.completions.recordPruning(type, live);
  const isDone = await client.delete(type, ref, { uid, resourceVersion, propagation });
  driftBackoff.deletions.recordDeletion(ownerUid, child, live);
  if (!isDone) return undefined;
  if (before === 'again') driftBackoff.recordCorrection(backoffKey);
  context.onWrite({ owner: describeObject(owner), type, ref, action: 'deleted' });
  return undefined;
}

/** The result of releasing seeded fields. */
interface ReleaseResult {
  /** The children that may be applied. */
  readonly applicable: readonly RenderedChild[];
  /** Why the others must wait. */
  readonly problems: readonly ChildProblem[];
}

/**
 * Deletes the children that made another writer act on a seeded field and are no longer rendered. Our apply
 * takes the field back only after they are deleted: until then the writer could write again. If a finalizer
 * delays that, the children that have the field wait; an event reports the deletion. While another child of
 * the writer's type is rendered, the field stays with the writer, so those that are no longer rendered can be
 * pruned after all applies.
 *
 * @throws ApiError, TransportError
 */
export async function releaseSeededFields(
  context: ReconcileContext,
  object: KubeObject,
  children: readonly RenderedChild[],
): Promise<ReleaseResult> {
  const isRendered = (writer: ResourceType): boolean => children.some(({ type }) => typeKey(type) === typeKey(writer));
  const seeds = context.kind.seeds.filter(({ writer }) => !isRendered(writer));
  if (seeds.length === 0) return { applicable: children, problems: [] };
  const writers = new Map(seeds.map(({ writer }) => [typeKey(writer), writer] as const));
  const { remaining: standing, problems } = await prune(context, object, children, [...writers.values()]);
  if (standing.length === 0) return { applicable: children, problems };
  const writing = new Set(standing.map(({ type }) => typeKey(type)));
  const bearers = new Set(seeds.filter(({ writer }) => writing.has(typeKey(writer))).map(({ of }) => typeKey(of)));
  const waits = ({ type, manifest }: RenderedChild): boolean =>
    bearers.has(typeKey(type)) && context.children(type).get(refOf(manifest)) !== undefined;
  const waiting = children.filter(waits).map(({ type }) => waitingForWriters(type, standing));
  return { applicable: children.filter((child) => !waits(child)), problems: [...problems, ...waiting] };
}

function waitingForWriters(bearer: ResourceType, standing: PruneResult['remaining']): ChildProblem {
  const writers = standing.map(({ type, live }) => `${type.kind} "${live.metadata.name}"`).join(', ');
  const message = `${writers} is being deleted; the ${bearer.kind} that it writes to is applied when it is gone`;
  return { readiness: { state: 'progressing', reason: 'Waiting', message }, retry: false };
}
