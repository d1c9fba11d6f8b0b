import { clusterSpec } from '../../../constructs/kinds/cluster-spec';
import type { Cluster } from '../../../constructs/kinds/cluster';
import { clusterInput, type ClusterInput, type TypedClusterSpec } from '../../../provision/cluster/cluster-input';

// The types are checked by `npm run typecheck`: a Cluster's spec is the input of a plan as it is.
const fromCluster = (cluster: Cluster): ClusterInput => clusterInput(cluster.metadata.name, cluster.spec);
const asTyped = (spec: Cluster['spec']): TypedClusterSpec => spec;

const version = { rke: 'v1.30.14-rancher1-1', rke2: 'v1.34.1+rke2r1', k3s: 'v1.34.1+k3s1' } as const;

test.each(['rke', 'rke2', 'k3s'] as const)('%s: a spec with defaults filled in', (distribution) => {
  const spec = clusterSpec.parse({
    distribution,
    version: version[distribution],
    nodes: [{ address: '10.0.0.1', user: 'root', roles: ['controlplane', 'etcd', 'worker'] }],
    sshKeySecretRef: { namespace: 'clusters', name: 'ssh' },
  });
  expect(asTyped(spec)).toBe(spec);
  const input = fromCluster({ metadata: { name: 'one' }, spec } as Cluster);
  expect(input).toMatchObject({
    name: 'one',
    distribution,
    version: version[distribution],
    nodes: [{ address: '10.0.0.1', port: 22 }],
    sshKey: { namespace: 'clusters', name: 'ssh', key: 'ssh-privatekey' },
  });
  const ofK3s = (given: ClusterInput): string | undefined =>
    given.distribution === 'k3s' ? given.options.flannelBackend : undefined;
  expect(ofK3s(input)).toBe(distribution === 'k3s' ? 'vxlan' : undefined);
});

test('options that are given are kept', () => {
  const spec = {
    distribution: 'rke2',
    version: version.rke2,
    nodes: [],
    sshKeySecretRef: { name: 'k', key: 'k' },
  } as const;
  expect(clusterInput('a', { ...spec, rke2: { cni: 'cilium' } }).options).toEqual({ cni: 'cilium' });
});

test('a cluster.yml is none', () => {
  expect(() => clusterInput('a', {})).toThrow('Cluster a: only one with nodes');
});
