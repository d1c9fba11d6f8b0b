import { clusterSpec } from '../../constructs/kinds/cluster-spec';
import { clusterInput, type ClusterInput, type Node } from '../../provision/cluster/cluster-input';

export type ServerDistribution = 'rke2' | 'k3s';

const VERSIONS = { rke: 'v1.30.14-rancher1-1', rke2: 'v1.34.1+rke2r1', k3s: 'v1.34.1+k3s1' };

const ALL: Node['roles'] = ['controlplane', 'etcd', 'worker'];

/** A node as a person writes it, with what is not given. */
export function node(address: string, more: Partial<Node> = {}): Partial<Node> {
  return { address, user: 'root', roles: ALL, ...more };
}

/** Three servers and two agents. */
export const HA_NODES = [
  node('10.0.0.1', { roles: ['controlplane', 'etcd'] }),
  node('10.0.0.2', { roles: ['controlplane', 'etcd'] }),
  node('10.0.0.3', { roles: ['controlplane', 'etcd'] }),
  node('10.0.0.4', { roles: ['worker'] }),
  node('10.0.0.5', { roles: ['worker'] }),
];

export interface GivenInput {
  readonly distribution?: ClusterInput['distribution'];
  readonly version?: string;
  readonly nodes?: readonly Partial<Node>[];
  readonly options?: object;
}

/** An input that went through the schema of a Cluster. */
export function inputOf({ distribution = 'rke2', version, nodes = HA_NODES, options = {} }: GivenInput): ClusterInput {
  const servers = nodes.filter(({ roles = [] }) => roles.some((role) => role !== 'worker')).length;
  const fixed = servers > 1 && distribution !== 'rke' ? { registrationAddress: 'api.example.com' } : {};
  const spec = clusterSpec.parse({
    distribution,
    version: version ?? VERSIONS[distribution],
    nodes,
    [distribution]: { ...fixed, ...options },
    sshKeySecretRef: { namespace: 'clusters', name: 'ssh' },
  });
  return clusterInput('prod', spec);
}
