import { MANAGED_BY_LABEL } from '../../../../constructs/kube/envelope';
import type { AnyKind } from '../../../../constructs/kind/kind';
import { owned } from '../../../../constructs/kube/resource-type';
import type { ObjectRef } from '../../../../operator/client/api-client';
import type { Bench } from './bench';
import { ready } from './conditions';
import { childrenStand } from './expect-children';

/** A change of a child that somebody else makes; each must be undone. */
export type Edit = readonly [what: string, patch: object];

/** The edits that any Deployment of ours must come back from. */
export function deploymentEdits(container: string): readonly Edit[] {
  return [
    ['label removed', { metadata: { labels: { [MANAGED_BY_LABEL]: null } } }],
    ['image changed', { spec: { template: { spec: { containers: [{ name: container, image: 'stranger:1' }] } } } }],
  ];
}

/** One more for a kind that renders the number of pods. */
export const replicasEdit: Edit = ['replicas changed', { spec: { replicas: 7 } }];

/** Edits a Deployment in several ways, then deletes it, and expects it back as rendered each time. */
export async function expectDeploymentBack(
  bench: Bench,
  kind: AnyKind,
  owner: ObjectRef,
  child: ObjectRef,
  edits: readonly Edit[],
): Promise<void> {
  const live = await bench.get(kind.type, owner);
  for (const [, patch] of edits) {
    await bench.patch(owned.Deployment, child, patch);
    await childrenStand(bench, kind, live);
  }
  const { uid } = (await bench.get(owned.Deployment, child)).metadata;
  await bench.client.delete(owned.Deployment, child);
  await bench.until(owned.Deployment, child, 'to be made anew', ({ metadata }) => metadata.uid !== uid);
  await childrenStand(bench, kind, live);
  await bench.until(kind.type, owner, 'Ready again', ready);
}
