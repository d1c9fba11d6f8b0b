import { childTypes } from '../../../constructs/core/kind';
import type { KubeObject } from '../../../constructs/core/kube-object';
import type { RenderedChild } from '../../../constructs/core/render';
import { typeKey } from '../../../constructs/core/resource-type';
import type { ResourceType } from '../../../constructs/core/resource-type';
import { describeObject } from '../../../constructs/core/validate';
import type { ReconcileContext } from './context';
import { refOf } from './write-child';

/** The live children that an object controls, of every type its kind owns or owned. */
export function controlledChildren(
  context: ReconcileContext,
  owner: KubeObject,
): readonly { readonly type: ResourceType; readonly live: KubeObject }[] {
  const { uid } = owner.metadata;
  if (uid === undefined) return [];
  return childTypes(context.kind).flatMap((type) =>
    context
      .children(type)
      .byOwner(uid)
      .filter(({ object }) => object.metadata.ownerReferences?.some((o) => o.controller === true && o.uid === uid))
      .map(({ object }) => ({ type, live: object })),
  );
}

/**
 * Deletes what an object controls and no longer renders, each with its UID and resourceVersion as preconditions.
 *
 * @param only limits the pruning to these types
 * @throws ApiError, TransportError
 */
export async function prune(
  context: ReconcileContext,
  owner: KubeObject,
  rendered: readonly RenderedChild[],
  only?: readonly ResourceType[],
): Promise<void> {
  const keep = new Set(rendered.map(({ type, manifest }) => `${typeKey(type)}/${manifest.metadata.name}`));
  const limit = only && new Set(only.map(typeKey));
  for (const { type, live } of controlledChildren(context, owner)) {
    if (keep.has(`${typeKey(type)}/${live.metadata.name}`)) continue;
    if (live.metadata.deletionTimestamp !== undefined) continue;
    if (limit !== undefined && !limit.has(typeKey(type))) continue;
    await deleteChild(context, owner, type, live, 'Background');
  }
}

/**
 * Deletes one child, unless it was replaced or changed meanwhile: its owner reference may be gone, which with `--cascade=orphan` is heard of
 * through another watch than the end of the orphaning.
 *
 * @throws ApiError `Conflict` when the cache was behind; TransportError
 */
export async function deleteChild(
  context: ReconcileContext,
  owner: KubeObject,
  type: ResourceType,
  live: KubeObject,
  propagation: 'Background' | 'Foreground',
): Promise<void> {
  const ref = refOf(live);
  const { uid, resourceVersion } = live.metadata;
  await context.client.delete(type, ref, { uid, resourceVersion, propagation });
  context.onWrite({ owner: describeObject(owner), type, ref, action: 'deleted' });
}
