import type { KubeObject } from '../../../../constructs/kube/kube-object';
import { owned } from '../../../../constructs/kube/resource-type';
import type { Hosts } from '../../../support/hosts';
import { rkeSpec } from '../../../e2e/provisioner/rke-world';
import { Cluster, Kubeconfig, STATE, condition, type ProvisionerWorld } from '../../../e2e/provisioner/world';
import type { CrashingOperator } from '../crashing-operator';

/** Of this process alone: RKE's folders for runs are this machine's. */
export const CLUSTER = `edge-${String(process.pid)}`;

/** A change of the Cluster. */
export interface ClusterStage {
  readonly name: 'create' | 'change' | 'delete';
  readonly act: (world: ProvisionerWorld, hosts: Hosts) => Promise<unknown>;
  readonly stands: boolean;
}

/** So many attempts that no crash makes a person necessary. */
const spec = (hosts: Hosts, names: readonly string[]): ReturnType<typeof rkeSpec> => ({
  ...rkeSpec(hosts, names),
  maxAttempts: 50,
});

/** A Cluster of RKE comes up, gets another machine, and is taken down. */
export const clusterLife: readonly ClusterStage[] = [
  {
    name: 'create',
    act: ({ bench }, hosts) => bench.make(Cluster, { name: CLUSTER }, spec(hosts, ['n1'])),
    stands: true,
  },
  {
    name: 'change',
    act: ({ bench }, hosts) => bench.respec(Cluster, { name: CLUSTER }, spec(hosts, ['n1', 'n2'])),
    stands: true,
  },
  { name: 'delete', act: ({ bench }) => bench.client.delete(Cluster.type, { name: CLUSTER }), stands: false },
];

/** What stands of a Cluster. */
export interface ClusterStanding {
  readonly objects: readonly KubeObject[];
  readonly secrets: readonly KubeObject[];
}

/** Waits until the provisioner has dealt with a stage and has nothing left to do. */
export async function settleCluster(
  { bench }: ProvisionerWorld,
  { name, stands }: ClusterStage,
  subject: CrashingOperator,
): Promise<ClusterStanding> {
  let before = '';
  return bench.eventually(`the stage ${name} to settle`, async () => {
    const operator = await subject.living();
    const [clusters, kubeconfigs, secrets] = await Promise.all([
      bench.client.list(Cluster.type, {}),
      bench.client.list(Kubeconfig.type, {}),
      bench.client.list(owned.Secret, { namespace: STATE }),
    ]);
    const objects = [...clusters.items, ...kubeconfigs.items];
    expect([objects.length, secrets.items.length]).toEqual(stands ? [2, 2] : [0, 0]);
    expect(objects.filter((object) => !isReady(object)).map(({ status }) => status)).toEqual([]);
    const metrics = await operator.metrics();
    const open = metrics.sum('workqueue_depth') + metrics.sum('controller_runtime_active_workers');
    expect({ open, missed: metrics.sum('kindred_missed_events_total') }).toEqual({ open: 0, missed: 0 });
    const versions = [...objects, ...secrets.items].map(({ metadata }) => metadata.resourceVersion).join();
    const now = `${versions} ${String(subject.writes.length)}`;
    const isStill = now === before && operator === (await subject.living());
    before = now;
    return isStill ? { objects, secrets: secrets.items } : undefined;
  });
}

function isReady(object: KubeObject): boolean {
  const { observedGeneration } = (object.status ?? {}) as { readonly observedGeneration?: number };
  return condition(object, 'Ready') === 'True' && observedGeneration === object.metadata.generation;
}
