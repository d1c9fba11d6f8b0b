import { keptGoneTypes, policyOf } from '../../constructs/kind/child-policy';
import type { RenderedChild } from '../../constructs/kind/render';
import { COMPLETED_ANNOTATION, FIELD_MANAGER } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { childHash } from '../apply/diff';
import { claimOf } from '../apply/ownership';
import { appliedManifest } from '../apply/write-child';
import { refOf, uidOf } from '../client/api-client';
import { completionOf, nameOf, recordedCompletions, type Completions } from './completions';
import type { ReconcileContext } from './context';
import { controlledChildren } from './prune';

/**
 * Records on an object which of its children have been current, and drops those that are not rendered so any more.
 * The record is an annotation, since a backup keeps annotations, and drops the status.
 *
 * @param rendered undefined when the children are not known: then nothing is dropped
 * @returns the object after the write
 * @throws ApiError `Conflict` when the cache was behind; TransportError
 */
export async function recordCompletions(
  context: ReconcileContext,
  object: KubeObject,
  rendered?: readonly RenderedChild[],
): Promise<KubeObject> {
  const types = keptGoneTypes(context.kind);
  if (types.length === 0) return object;
  const before = recordedCompletions(object);
  const now = Date.parse(context.now());
  const live = controlledChildren(context, object, types).map(({ type, live: child }) =>
    completionOf(type, child, now),
  );
  const uid = uidOf(object);
  const seen = context.completions.of(uid);
  const known = Object.assign({}, before, seen, ...live) as Completions;
  const current = rendered && new Map(rendered.map((child) => [nameOf(child.type, child.manifest), child]));
  const isKept = ([name, hash]: readonly [string, string]): boolean => {
    const child = current?.get(name);
    return current === undefined || (child !== undefined && hash === childHash(appliedManifest(child)));
  };
  const entries = Object.entries(known).filter(isKept);
  const recorded = (written: KubeObject): KubeObject => {
    if (rendered !== undefined) context.completions.forget(uid, seen);
    return written;
  };
  const value = JSON.stringify(Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))));
  if (value === JSON.stringify(before)) return recorded(object);
  const { resourceVersion } = object.metadata;
  const annotations = { [COMPLETED_ANNOTATION]: entries.length === 0 ? null : value };
  const ref = refOf(object);
  const patched = await context.objects.trackWrite(ref, () =>
    context.client.patch(
      context.kind.type,
      ref,
      { metadata: { uid, resourceVersion, annotations } },
      { type: 'merge', fieldManager: FIELD_MANAGER },
    ),
  );
  return recorded(patched);
}

/**
 * Whether a child is deleted, and is not to be created again: it was current as it is rendered now.
 *
 * @param owner with its record, as {@link recordCompletions} returns it
 */
export function isKeptGone(context: ReconcileContext, owner: KubeObject, child: RenderedChild): boolean {
  const { type, manifest } = child;
  if (policyOf(type).whenGone !== 'keep-gone') return false;
  const live = context.children(type).get(refOf(manifest))?.object;
  if (live !== undefined && live.metadata.deletionTimestamp === undefined && claimOf(live, owner) === 'ours')
    return false;
  return recordedCompletions(owner)[nameOf(type, manifest)] === childHash(appliedManifest(child));
}

/** Whether an object has a record of children that were current, besides some of its children. */
export function hasCompletedOthers(owner: KubeObject, children: readonly RenderedChild[]): boolean {
  const names = new Set(children.map(({ type, manifest }) => nameOf(type, manifest)));
  return Object.keys(recordedCompletions(owner)).some((name) => !names.has(name));
}
