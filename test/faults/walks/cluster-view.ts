import { MANAGED_BY, MANAGED_BY_LABEL, PREFIX } from '../../../constructs/kube/envelope';
import { childTypes, type AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { groupOf, typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import type { ApiClient } from '../../../operator/client/api-client';
import { operatorKinds } from '../../e2e/operator/support/bench';
import { is } from '../../e2e/operator/support/conditions';
import type { Found } from './drift';

const types = [...new Map(operatorKinds.flatMap(childTypes).map((type) => [typeKey(type), type])).values()];

/** A namespace at one moment: the objects of our kinds, and everything of the types that their children have. */
export class ClusterView {
  private constructor(
    private readonly owners: ReadonlyMap<AnyKind, readonly KubeObject[]>,
    private readonly objects: readonly Found[],
  ) {}

  static async look(client: ApiClient, namespace: string): Promise<ClusterView> {
    const list = async (type: ResourceType): Promise<readonly KubeObject[]> => {
      const { items } = await client.list(type, { namespace });
      // Lists of built-in types leave these two out of their items.
      return items.map((item) => ({ ...item, apiVersion: type.apiVersion, kind: type.kind }));
    };
    const owners = operatorKinds.map(async (kind) => [kind, await list(kind.type)] as const);
    const objects = types.map(async (type) => (await list(type)).map((object): Found => ({ type, object })));
    return new ClusterView(new Map(await Promise.all(owners)), (await Promise.all(objects)).flat());
  }

  ownersOf(kind: AnyKind): readonly KubeObject[] {
    return this.owners.get(kind) ?? [];
  }

  allOwners(): readonly KubeObject[] {
    return [...this.owners.values()].flat();
  }

  find(type: ResourceType, name: string): KubeObject | undefined {
    const key = typeKey(type);
    return this.objects.find((found) => typeKey(found.type) === key && found.object.metadata.name === name)?.object;
  }

  /** Whatever bears a sign of ours: the label, an annotation, or an owner of one of our kinds. */
  ours(): readonly Found[] {
    return this.objects.filter(({ object: { metadata } }) => {
      const { labels = {}, annotations = {}, ownerReferences = [] } = metadata;
      const annotated = Object.keys(annotations).some((name) => name.startsWith(PREFIX));
      const owned = ownerReferences.some((reference) =>
        operatorKinds.some((kind) => kind.kind === reference.kind && kind.group === groupOf(reference)),
      );
      return labels[MANAGED_BY_LABEL] === MANAGED_BY || annotated || owned;
    });
  }

  /** How many owners stand, and how many of them are Ready. */
  summary(): string {
    const owners = this.allOwners();
    const count = owners.filter((owner) => is(owner, 'Ready', 'True')).length;
    return `${String(count)} of ${String(owners.length)} objects are Ready`;
  }

  /** Every object's version: two views with one text are two looks at the same state. */
  versions(): string {
    const all = [...this.allOwners(), ...this.objects.map(({ object }) => object)];
    return all
      .map(({ metadata: { uid = '', resourceVersion = '' } }) => `${uid}@${resourceVersion}`)
      .sort()
      .join(' ');
  }
}
