import * as pulumi from '@pulumi/pulumi';
import type { NodeArgs, RemoteCluster, RemoteClusterArgs } from '../../../stacks/remote-cluster/remote-cluster';

/** Types are checked by `npm run typecheck`; nothing here runs. */
const address = pulumi.output('10.0.0.1');
const node: NodeArgs = { name: 'one', address, hostKey: address, user: 'root', roles: ['controlplane', 'etcd'] };
const common = { nodes: [node], sshKey: 'key' };

export const accepted: readonly RemoteClusterArgs[] = [
  {
    ...common,
    distribution: 'k3s',
    version: 'v1.30.4+k3s1',
    options: { tlsSans: [address], registrationAddress: address },
  },
  {
    ...common,
    distribution: 'rke2',
    version: 'v1.30.4+rke2r1',
    options: { cni: 'cilium' },
    secrets: { 'a/b': { c: address } },
  },
  { ...common, distribution: 'rke', version: 'v1.30.14-rancher1-1', options: { network: { plugin: 'canal' } } },
];

export const refused: readonly RemoteClusterArgs[] = [
  // @ts-expect-error -- an option of another distribution
  { ...common, distribution: 'k3s', version: 'v1.30.4+k3s1', options: { cni: 'cilium' } },
  // @ts-expect-error -- no such distribution
  { ...common, distribution: 'kubeadm', version: 'v1.30.4' },
  // @ts-expect-error -- a key is needed
  { nodes: [node], distribution: 'k3s', version: 'v1.30.4+k3s1' },
  // @ts-expect-error -- how many nodes there are must be known
  { ...common, nodes: pulumi.output([node]), distribution: 'k3s', version: 'v1.30.4+k3s1' },
  // @ts-expect-error -- what a node does must be known
  { ...common, nodes: [{ ...node, roles: pulumi.output(['worker']) }], distribution: 'k3s', version: 'v1.30.4+k3s1' },
];

export function outputs(cluster: RemoteCluster): readonly [pulumi.Output<string>, pulumi.ProviderResource] {
  return [cluster.kubeconfig, cluster.provider];
}
