import { stringify } from 'yaml';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject, ObjectMeta } from '../../../constructs/kube/kube-object';
import {
  renderShared,
  renderDefaulted,
  sharedKeys,
  withDefaults,
  type RenderedChild,
} from '../../../constructs/kind/render';

const NAMESPACE = 'team';
const UID = '6fd2399d-0e7f-4b06-9f21-d83aab83e287';

/** An object of a kind as it stands on a server. */
export function objectOf(kind: AnyKind, name: string, spec?: object, metadata: Partial<ObjectMeta> = {}): KubeObject {
  const { apiVersion, kind: kindName } = kind;
  return {
    apiVersion,
    kind: kindName,
    metadata: { name, namespace: NAMESPACE, uid: UID, ...metadata },
    ...(spec === undefined ? {} : { spec }),
  };
}

/** All children of an object, shared ones last. */
export function childrenOf(kind: AnyKind, object: KubeObject): readonly RenderedChild[] {
  const self = withDefaults(kind, object);
  const shared = sharedKeys(kind, self).flatMap(({ group, key }) => renderShared(kind, group, key, NAMESPACE));
  return [...renderDefaulted(kind, self), ...shared];
}

/** The children of an object of this spec as `<kind> <name>`. */
export function titlesOf(kind: AnyKind, object: KubeObject): readonly string[] {
  return childrenOf(kind, object).map(({ manifest }) => `${manifest.kind} ${manifest.metadata.name}`);
}

/** The whole manifest of an object's children, as YAML. */
export function manifestOf(kind: AnyKind, object: KubeObject): string {
  return childrenOf(kind, object)
    .map(({ manifest }) => stringify(manifest, { lineWidth: 0 }))
    .join('---\n');
}

/** One child, loosely typed for assertions. */
export function childOf(kind: AnyKind, object: KubeObject, type: string, name: string): KubeObject {
  const found = childrenOf(kind, object).find(
    ({ manifest }) => manifest.kind === type && manifest.metadata.name === name,
  );
  if (found === undefined) throw new Error(`no ${type} ${name} among ${titlesOf(kind, object).join(', ')}`);
  return found.manifest;
}

/** What the schema says of a spec: the paths that are wrong. */
export function wrongPaths(kind: AnyKind, spec: object): readonly string[] {
  try {
    withDefaults(kind, objectOf(kind, 'x', spec));
    return [];
  } catch (error) {
    return (error as { problems: readonly { path: string }[] }).problems.map(({ path }) => path);
  }
}

/** `observe` of a kind with these live children. */
export function observed(kind: AnyKind, object: KubeObject, live: readonly KubeObject[]): unknown {
  const all = ((type: { kind: string }) => live.filter((child) => child.kind === type.kind)) as never;
  const one = ((type: { kind: string }) => live.find((child) => child.kind === type.kind)) as never;
  return kind.observe?.({ self: withDefaults(kind, object), children: { all, one } });
}
