import type { Cluster, Kubeconfig } from '../../../constructs/kinds';
import type { KindSpec } from '../../../constructs/kind/kind';

type ClusterSpec = KindSpec<typeof Cluster>;

/** What, whether it is valid, and the spec. Zod and the API server must judge each alike. */
export type SpecCase = readonly [what: string, valid: boolean, spec: object];

const key = { namespace: 'clusters', name: 'ssh-key' };
const secret = { namespace: 'clusters', name: 'credentials' };
const value = { ...secret, key: 'ca.crt' };

const server = { address: '10.18.74.175', user: 'tht', roles: ['controlplane', 'etcd', 'worker'] } as const;

/** One node with every role. */
export const rke2 = {
  nodes: [{ ...server, roles: [...server.roles] }],
  distribution: 'rke2',
  version: 'v1.30.4+rke2r1',
  sshKeySecretRef: key,
} satisfies ClusterSpec;

export const k3s = { ...rke2, distribution: 'k3s', version: 'v1.30.4+k3s1' } satisfies ClusterSpec;
export const rke = { ...rke2, distribution: 'rke', version: 'v1.24.8-rancher1-1' } satisfies ClusterSpec;

const s3 = {
  endpoint: 's3.eu-central-1.amazonaws.com',
  region: 'eu-central-1',
  bucket: 'backups',
  folder: 'etcd/prod',
  credentialsSecretRef: secret,
  caSecretRef: value,
};

const upgradeStrategy = { workerConcurrency: 3, drain: { enabled: true, deleteEmptyDirData: true } };

/** Every field of a node. */
const node = {
  address: 'node-1.example.com',
  port: 2222,
  user: 'ubuntu',
  roles: ['worker'],
  internalAddress: '10.0.0.5',
  hostnameOverride: 'worker-1',
  labels: { 'topology.kubernetes.io/zone': 'a', plain: '' },
  taints: [
    { key: 'dedicated', value: 'gpu', effect: 'NoSchedule' },
    { key: 'dedicated', effect: 'NoExecute' },
  ],
  hostKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7yNZLTcBq1i0FCpRlpCyuVfaBSbYmPtNWq7fDmPcGn',
  bastion: { address: 'fd00::1', user: 'jump', hostKey: 'ssh-rsa AAAAB3Nza==', sshKeySecretRef: { ...key, key: 'id' } },
} satisfies NonNullable<ClusterSpec['nodes']>[number];

const both = {
  clusterCidrs: ['10.42.0.0/16', 'fd00:42::/56'],
  serviceCidrs: ['10.43.0.0/16', 'fd00:43::/112'],
  clusterDns: ['10.43.0.10'],
  clusterDomain: 'cluster.local',
  serviceNodePortRange: '30000-32767',
  registrationAddress: 'api.example.com',
  tlsSans: ['api.example.com', '192.0.2.1'],
  dataDir: '/data/rancher',
  etcdSnapshots: { schedule: '0 */12 * * *', retention: 10, compress: true, s3 },
  registries: [
    { host: 'registry.example.com:5000', endpoints: ['https://mirror.example.com/v2/'], credentialsSecretRef: secret },
    { host: 'docker.io', endpoints: ['https://mirror.example.com'], caSecretRef: value },
  ],
  systemDefaultRegistry: 'registry.example.com/system',
  extraArgs: { kubelet: { 'max-pods': '250' }, kubeApiserver: { 'feature-gates': 'A=true,B=false' }, etcd: {} },
  protectKernelDefaults: true,
  selinux: true,
  upgradeStrategy,
};

/** Every field of each distribution. */
export const full = {
  rke: {
    ...rke,
    nodes: [...rke.nodes, node],
    rke: {
      clusterCidr: '10.42.0.0/16',
      serviceCidr: '10.43.0.0/16',
      clusterDns: '10.43.0.10',
      clusterDomain: 'cluster.local',
      network: { plugin: 'calico', mtu: 1450 },
      services: {
        etcd: { extraArgs: { 'quota-backend-bytes': '8589934592' }, snapshots: { intervalHours: 6, retention: 3, s3 } },
        kubeApi: {
          serviceNodePortRange: '30000-32767',
          alwaysPullImages: true,
          secretsEncryption: true,
          auditLog: true,
        },
        kubeController: { extraArgs: {} },
        scheduler: {},
        kubelet: {
          extraArgs: { 'cgroup-driver': 'systemd', 'fail-swap-on': 'false' },
          failSwapOn: false,
          generateServingCertificate: true,
        },
        kubeproxy: { extraArgs: { 'proxy-mode': 'ipvs' } },
      },
      tlsSans: ['api.example.com'],
      authorization: 'rbac',
      ingressProvider: 'none',
      dnsProvider: 'coredns',
      metricsProvider: 'metrics-server',
      ignoreDockerVersion: true,
      enableCriDockerd: true,
      privateRegistries: [{ url: 'registry.example.com:5000/mirror', credentialsSecretRef: secret, isDefault: true }],
      upgradeStrategy,
    },
    deletionPolicy: 'Retain',
    maxAttempts: 3,
  },
  rke2: {
    ...rke2,
    nodes: [...rke2.nodes, node],
    rke2: {
      ...both,
      cni: 'cilium',
      multus: true,
      disable: ['rke2-ingress-nginx', 'rke2-metrics-server'],
      disableKubeProxy: true,
      disableCloudController: true,
      ingressController: 'traefik',
      profile: 'cis',
    },
  },
  k3s: {
    ...k3s,
    nodes: [...k3s.nodes, node],
    k3s: {
      ...both,
      datastore: { type: 'etcd' },
      flannelBackend: 'wireguard-native',
      disable: ['traefik', 'servicelb'],
      disableNetworkPolicy: true,
      disableKubeProxy: true,
      disableCloudController: true,
      disableHelmController: true,
      secretsEncryption: true,
    },
  },
} satisfies Readonly<Record<string, ClusterSpec>>;

const without = (spec: object, ...fields: readonly string[]): object =>
  Object.fromEntries(Object.entries(spec).filter(([field]) => !fields.includes(field)));

const withNode = (fields: object): object => ({ ...rke2, nodes: [{ ...server, ...fields }] });
const withTaint = (taintKey: string): object => withNode({ taints: [{ key: taintKey, effect: 'NoSchedule' }] });
/** A prefix of a label's key. Kubernetes bounds it as a whole, and not each part. */
const prefix = (length: number): string => `${'a'.repeat(100)}.${'b'.repeat(length - 101)}`;
const external = { type: 'external', endpointSecretRef: value };
const workers = (count: number): object[] =>
  Array.from({ length: count }, (_, i) => ({ address: `10.0.${i >> 8}.${i & 255}`, user: 'root', roles: ['worker'] }));

/** With keys about as long as those that clouds use: the rules on them must stay within the server's budget at run time too. */
const labelled = (count: number, labels: number): object[] => {
  const keys = Array.from({ length: labels }, (_, i) => `topology.region.example.com/availability-zone-${i}`);
  return workers(count).map((node) => ({
    ...node,
    labels: Object.fromEntries(keys.map((key) => [key, 'eu-central-1a'])),
  }));
};

const sources: readonly SpecCase[] = [
  ['a path', true, { configPath: 'config/rkespec/cluster_aws.yml' }],
  ['an absolute path', true, { configPath: '/etc/kindred/clusters/aws.yml' }],
  ['a Secret', true, { configSecretRef: { namespace: 'clusters', name: 'aws', key: 'cluster.yml' } }],
  ['a path with a key', true, { configPath: 'aws.yml', sshKeySecretRef: { ...key, key: 'id_rsa' } }],
  ['RKE2 nodes', true, rke2],
  ['K3s nodes', true, k3s],
  ['RKE nodes', true, rke],
  ['every field of RKE', true, full.rke],
  ['every field of RKE2', true, full.rke2],
  ['every field of K3s', true, full.k3s],
  ['no source', false, {}],
  ['a path and a Secret', false, { configPath: 'a.yml', configSecretRef: value }],
  ['a path and nodes', false, { ...rke2, configPath: 'a.yml' }],
  ['a Secret and nodes', false, { ...rke2, configSecretRef: value }],
  ['all three', false, { ...rke2, configPath: 'a.yml', configSecretRef: value }],
  ['nodes without a distribution', false, without(rke2, 'distribution')],
  ['nodes without a version', false, without(rke2, 'version')],
  ['a path with a version', false, { configPath: 'a.yml', version: 'v1.30.4+rke2r1' }],
  ['nodes without a key', false, without(rke2, 'sshKeySecretRef')],
  ['a path out of the directory', false, { configPath: '../cluster.yml' }],
  ['a path out of the directory further on', false, { configPath: 'a/../../cluster.yml' }],
  ['a hidden path', false, { configPath: '.ssh/id_rsa' }],
  ['a path that is an option', false, { configPath: '--config' }],
  ['a path that goes nowhere', false, { configPath: '/' }],
  ['an empty path', false, { configPath: '' }],
  ['a path of two lines', false, { configPath: 'a.yml\nb' }],
  ['a path too long', false, { configPath: 'a'.repeat(1025) }],
  ['a Secret without a namespace', false, { configSecretRef: without(value, 'namespace') }],
  ['a Secret without a key', false, { configSecretRef: secret }],
];

const distributions: readonly SpecCase[] = [
  ['options of another distribution', false, { ...k3s, rke2: {} }],
  ['options of RKE with RKE2', false, { ...rke2, rke: {} }],
  ['options of K3s with RKE', false, { ...rke, k3s: {} }],
  ['options with a path', false, { configPath: 'a.yml', rke: {} }],
  ['a version of another distribution', false, { ...rke2, version: 'v1.30.4+k3s1' }],
  ['a version of RKE2 with RKE', false, { ...rke, version: 'v1.30.4+rke2r1' }],
  ['a version of RKE with K3s', false, { ...k3s, version: 'v1.24.8-rancher1-1' }],
  ['a release candidate', true, { ...rke2, version: 'v1.31.0-rc2+rke2r1' }],
  ['a channel instead of a version', false, { ...k3s, version: 'stable' }],
  ['another distribution', false, { ...rke2, distribution: 'kubeadm' }],
  ['SQLite on one server', true, { ...k3s, k3s: { datastore: { type: 'sqlite' } } }],
  [
    'SQLite on two servers',
    false,
    { ...k3s, nodes: [server, { ...server, address: 'b' }], k3s: { datastore: { type: 'sqlite' } } },
  ],
  [
    'a database elsewhere, and no etcd',
    true,
    { ...k3s, nodes: [{ ...server, roles: ['controlplane'] }], k3s: { datastore: external } },
  ],
  ['a database elsewhere without its address', false, { ...k3s, k3s: { datastore: { type: 'external' } } }],
  ['an address without a database elsewhere', false, { ...k3s, k3s: { datastore: { ...external, type: 'etcd' } } }],
  ['snapshots of an etcd that is not there', false, { ...k3s, k3s: { datastore: external, etcdSnapshots: {} } }],
  ['add-ons', false, { ...rke, rke: { addons: 'kind: Pod' } }],
  ['a bad CIDR', false, { ...rke, rke: { clusterCidr: '10.42.0.0/33' } }],
  ['a bad address', false, { ...rke, rke: { clusterDns: '10.43.0.256' } }],
  ['an argument with dashes', false, { ...rke2, rke2: { extraArgs: { kubelet: { '--max-pods': '1' } } } }],
  ['an argument with a command', false, { ...rke2, rke2: { extraArgs: { kubelet: { 'max-pods': '$(reboot)' } } } }],
  ['a schedule that runs backwards', false, { ...rke2, rke2: { etcdSnapshots: { schedule: '5-1 * * * *' } } }],
  ['two registries of one host', false, { ...k3s, k3s: { registries: [{ host: 'a.b' }, { host: 'a.b' }] } }],
  ['a component that K3s does not bring', false, { ...k3s, k3s: { disable: ['nginx'] } }],
];

const machines: readonly SpecCase[] = [
  ['no nodes', false, { ...rke2, nodes: [] }],
  ['the most nodes', true, { ...rke2, nodes: [server, ...workers(199)] }],
  ['the most nodes with the most labels', true, { ...rke2, nodes: [server, ...labelled(199, 32)] }],
  ['more labels', false, { ...rke2, nodes: [server, ...labelled(1, 33)] }],
  ['more nodes', false, { ...rke2, nodes: [server, ...workers(200)] }],
  ['two nodes of one address', false, { ...rke2, nodes: [server, { ...server, user: 'root' }] }],
  ['no control plane', false, withNode({ roles: ['etcd', 'worker'] })],
  ['no etcd', false, withNode({ roles: ['controlplane', 'worker'] })],
  ['no worker with RKE2', true, withNode({ roles: ['controlplane', 'etcd'] })],
  ['no worker with RKE', false, { ...rke, nodes: [{ ...server, roles: ['controlplane', 'etcd'] }] }],
  ['a role twice', false, withNode({ roles: ['controlplane', 'etcd', 'etcd'] })],
  ['an unknown role', false, withNode({ roles: ['controlplane', 'etcd', 'server'] })],
  ['no role', false, withNode({ roles: [] })],
  ['no user', false, { ...rke2, nodes: [without(server, 'user')] }],
  ['a user that is an option', false, withNode({ user: '-oProxyCommand' })],
  ['an address that is an option', false, withNode({ address: '-oProxyCommand=x' })],
  ['an IPv6 address', true, withNode({ address: '2001:db8::17' })],
  ['a port out of range', false, withNode({ port: 65536 })],
  ['a bad key of a label', false, withNode({ labels: { 'a b': 'c' } })],
  ['a bad prefix of a label', false, withNode({ labels: { '/a': 'c' } })],
  ['a key of a label as long as may be', true, withNode({ labels: { [`${prefix(253)}/${'a'.repeat(63)}`]: 'c' } })],
  ['a key of a label with too long a name', false, withNode({ labels: { ['a'.repeat(64)]: 'c' } })],
  ['a key of a label with too long a prefix', false, withNode({ labels: { [`${prefix(254)}/a`]: 'c' } })],
  ['a key of a taint as long as may be', true, withTaint(`${prefix(253)}/${'a'.repeat(63)}`)],
  ['a key of a taint with too long a name', false, withTaint(`example.com/${'a'.repeat(64)}`)],
  ['a key of a taint with too long a prefix', false, withTaint(`${prefix(254)}/a`)],
  ['a name of a node as long as may be', true, withNode({ hostnameOverride: 'a'.repeat(63) })],
  ['a name of a node that is too long', false, withNode({ hostnameOverride: `${'a'.repeat(32)}.${'b'.repeat(31)}` })],
  ['a domain with a label that is too long', false, withNode({ address: `${'a'.repeat(64)}.example.com` })],
  ['a bad value of a label', false, withNode({ labels: { a: '$(b)' } })],
  ['a taint twice', false, withNode({ taints: [1, 2].map(() => ({ key: 'a', effect: 'NoSchedule' })) })],
  ['an unknown effect', false, withNode({ taints: [{ key: 'a', effect: 'Never' }] })],
  ['a private key as host key', false, withNode({ hostKey: '-----BEGIN OPENSSH PRIVATE KEY-----' })],
  ['an unknown field', false, withNode({ sshKeyPath: '/home/me/.ssh/id_rsa' })],
  ['no attempt', false, { ...rke2, maxAttempts: 0 }],
  ['an unknown policy', false, { ...rke2, deletionPolicy: 'Orphan' }],
];

export const clusterSpecs: readonly SpecCase[] = [...sources, ...distributions, ...machines];

export const kubeconfigSpecs: readonly SpecCase[] = [
  ['a path', true, { configPath: 'config/kube_config.yml' } satisfies KindSpec<typeof Kubeconfig>],
  ['a Secret', true, { secretRef: { ...secret, key: 'value' } } satisfies KindSpec<typeof Kubeconfig>],
  ['neither', false, {}],
  ['both', false, { configPath: 'a', secretRef: value }],
  ['a path out of the directory', false, { configPath: '../admin.conf' }],
  ['a Secret in a bad namespace', false, { secretRef: { ...value, namespace: 'a/b' } }],
  ['a bad key', false, { secretRef: { ...value, key: 'a b' } }],
];
