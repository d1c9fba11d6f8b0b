import { InvalidObjectError, RenderError } from '../constructs/kube/errors';
import { childTypes, type AnyKind } from '../constructs/kind/kind';
import type { KubeObject, ObjectMeta } from '../constructs/kube/kube-object';
import { renderDefaulted, renderShared, sharedKeys, withDefaults } from '../constructs/kind/render';
import { typeKey, type ResourceType } from '../constructs/kube/resource-type';

/** Any name: it is part of no child that is shown. */
const NAMESPACE = 'samples';

/**
 * The types among a kind's `owns`, and those of its shared groups, that none of its samples renders: either a
 * sample is missing, or the operator has write permissions that it does not need.
 *
 * It is not an error of the definition. Which children there are may depend on the spec in a way that only the
 * kind's code knows, and a generic kind renders what its spec says. The types of a kind that renders children
 * from `self.status` are not reported: no sample has a status.
 *
 * @throws InvalidObjectError, RenderError for a sample that has no children because it is wrong
 */
export function unrenderedTypes(kind: AnyKind): readonly ResourceType[] {
  const rendered = new Set<string>();
  const statusReads: string[] = [];
  for (const { name, labels, spec } of kind.samples) {
    const metadata: ObjectMeta = {
      ...{ name, ...(labels && { labels }) },
      ...(kind.scope === 'Namespaced' ? { namespace: NAMESPACE } : {}),
    };
    const object: KubeObject = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, spec: spec as unknown };
    const self = withDefaults(kind, object);
    const shared = sharedKeys(kind, self);
    const children = [
      ...renderDefaulted(kind, self, {}, (path) => statusReads.push(path)),
      ...shared.flatMap(({ group, key }) => renderShared(kind, group, key, metadata.namespace)),
    ];
    for (const { type } of children) rendered.add(typeKey(type));
  }
  if (statusReads.length > 0) return [];
  const former = new Set(kind.formerlyOwned.map(typeKey));
  return childTypes(kind).filter((type) => !rendered.has(typeKey(type)) && !former.has(typeKey(type)));
}

/** What is said about such types; undefined when each is rendered by a sample. */
export function unrenderedNotice({ kind }: AnyKind, types: readonly ResourceType[]): string | undefined {
  if (types.length === 0) return undefined;
  const names = types.map(typeKey).join(', ');
  return (
    `No sample of ${kind} renders ${names}, so its operator may have permissions to create, change and delete that ` +
    'it does not need. Add a sample that renders it, or leave it out of `owns`; what earlier versions rendered ' +
    'belongs in `formerlyOwned`.'
  );
}

/**
 * The notices about the kinds whose samples can be rendered. A sample that cannot be says so itself where it is
 * applied.
 */
export function unrenderedNotices(kinds: readonly AnyKind[]): readonly string[] {
  return kinds.flatMap((kind) => {
    try {
      return unrenderedNotice(kind, unrenderedTypes(kind)) ?? [];
    } catch (error) {
      if (error instanceof InvalidObjectError || error instanceof RenderError) return [];
      throw error;
    }
  });
}
