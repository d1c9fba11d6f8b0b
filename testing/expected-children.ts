import { controllerReference, withEnvelope, ownerReference } from '../constructs/kube/envelope';
import type { AnyKind } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { renderChildren, renderShared, sharedKeys, withDefaults, type RenderedChild } from '../constructs/kind/render';
import type { ResourceType } from '../constructs/kube/resource-type';
import { childHash } from '../operator/apply/diff';

/** A child as it must be on the server, without the server's own defaults. */
export interface ExpectedChild {
  readonly type: ResourceType;
  readonly object: KubeObject;
}

/**
 * The children that an object controls, with their envelope, as the operator applies them. Seeded fields are
 * left out: another writer owns them.
 *
 * @param owner as it is on the server, with its UID
 */
export function expectedChildren(kind: AnyKind, owner: KubeObject): readonly ExpectedChild[] {
  return renderChildren(kind, owner).map((child) => {
    const applied = withoutSeeds(child);
    const envelope = { ownerReferences: [controllerReference(owner)], ownerUid: owner.metadata.uid };
    return { type: child.type, object: withEnvelope(applied, { ...envelope, hash: childHash(applied) }) };
  });
}

/** The children that these objects share: the owners must all name the same key and be sorted by name. */
export function expectedShared(kind: AnyKind, owners: readonly KubeObject[]): readonly ExpectedChild[] {
  const [first] = owners;
  if (first === undefined) return [];
  return sharedKeys(kind, withDefaults(kind, first)).flatMap(({ group, key }) =>
    renderShared(kind, group, key, first.metadata.namespace).map(({ type, manifest }) => {
      const sharedKey = `${kind.crdName}/${group.name}/${key}`;
      const envelope = { ownerReferences: owners.map(ownerReference), sharedKey, hash: childHash(manifest) };
      return { type, object: withEnvelope(manifest, envelope) };
    }),
  );
}

function withoutSeeds({ manifest, seeds }: RenderedChild): KubeObject {
  return seeds.reduce<KubeObject>((object, { path }) => dropped(object, path) as KubeObject, manifest);
}

function dropped(value: unknown, [step, ...rest]: readonly string[]): unknown {
  if (step === undefined || typeof value !== 'object' || value === null) return value;
  const { [step]: field, ...others } = value as Record<string, unknown>;
  return rest.length === 0 ? others : { ...others, [step]: dropped(field, rest) };
}
