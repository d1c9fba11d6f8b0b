/**
 * Options of the distributions `rke`, `rke2` and `k3s`, and of the installer of the last two. Those that they
 * share come first.
 */
import { z } from 'zod';
import { atomicList, immutable, listMap, listSet, withRule } from '../kind/fields';
import { cel } from '../kind/schema/cel';
import {
  absolutePath,
  bucketName,
  cidr,
  dataDirectory,
  domain,
  endpointUrl,
  extraArgs,
  host,
  hostAndPort,
  ipAddress,
  objectPrefix,
  region,
  registryPrefix,
  secretKeyRef,
  secretRef,
} from './cluster-fields';
import { snapshotSchedule } from './schedule-fields';

/** A range of addresses that a running cluster cannot change. */
const immutableCidr = immutable(cidr(), 'cannot be changed: running pods and Services have addresses in it');

/** The ports of Services of type NodePort. */
const nodePortRange = z
  .string()
  .max(11)
  .regex(/^[1-9][0-9]{0,4}-[1-9][0-9]{0,4}$/, { error: 'must be a range of ports such as 30000-32767' });

/** More names and addresses in the API server's certificate. */
const tlsSans = listSet(host(), { maxItems: 64 });

/** Where to copy snapshots of etcd, besides the machine's own disk. */
const snapshotStore = z.object({
  endpoint: hostAndPort().describe('Host of the object store, with a port if need be: s3.eu-central-1.amazonaws.com.'),
  region: region().optional().describe('Region of the bucket.'),
  bucket: bucketName().describe('Bucket that the snapshots go to.'),
  folder: objectPrefix().optional().describe('Path below the root of the bucket.'),
  credentialsSecretRef: secretRef
    .optional()
    .describe('Secret with the keys accessKey and secretKey. Default: what the machine itself may do.'),
  caSecretRef: secretKeyRef
    .optional()
    .describe("Certificates, in PEM, that the object store's is checked with. Default: the machine's."),
});

/** Scheduled snapshots of etcd, as RKE2 and K3s take them. */
const etcdSnapshots = z.object({
  enabled: z.boolean().default(true).describe('Take snapshots on a schedule.'),
  schedule: snapshotSchedule()
    .optional()
    .describe('When: five fields, or @daily and the like. Default: every 12 hours.'),
  retention: z.int().min(1).max(1000).optional().describe('How many to keep on each machine. Default: 5.'),
  compress: z.boolean().optional().describe('Compress them.'),
  s3: snapshotStore.optional().describe('An object store to copy them to.'),
});

const registry = z.object({
  host: hostAndPort().describe('Registry as it stands in the names of images, with its port if any.'),
  endpoints: atomicList(endpointUrl().describe('Address of a mirror.'), { maxItems: 16 })
    .optional()
    .describe('Mirrors to ask before the registry itself, in order.'),
  credentialsSecretRef: secretRef.optional().describe('Secret with the keys username and password.'),
  caSecretRef: secretKeyRef.optional().describe("Certificates, in PEM, that the registry's is checked with."),
});

/** Registries with mirrors, credentials or certificates of their own, for containerd in RKE2 and K3s. */
const registries = listMap(registry, ['host'], { maxItems: 32 });

const drain = z.object({
  enabled: z.boolean().default(false).describe('Drain each node before its upgrade; it is only cordoned otherwise.'),
  force: z.boolean().default(false).describe('Also delete pods that no controller would bring back.'),
  ignoreDaemonSets: z.boolean().default(true).describe('Leave the pods of DaemonSets where they are.'),
  deleteEmptyDirData: z.boolean().default(false).describe('Also evict pods whose emptyDir volumes are lost with them.'),
  gracePeriodSeconds: z
    .int()
    .min(-1)
    .max(86400)
    .default(-1)
    .describe('Time that pods have to end; -1 leaves it to each pod.'),
  timeoutSeconds: z.int().min(1).max(86400).default(120).describe('Time after which draining has failed.'),
});

/** How nodes are updated when something changes. */
const upgradeStrategy = z.object({
  controlPlaneConcurrency: z.int().min(1).max(9).default(1).describe('How many control plane nodes at once.'),
  workerConcurrency: z.int().min(1).max(200).default(1).describe('How many workers at once.'),
  drain: drain.optional().describe('What happens to the pods of a node first.'),
});

/** Arguments of the Kubernetes components, for RKE2 and K3s. */
const componentArgs = z.object({
  kubeApiserver: extraArgs().optional().describe('Arguments of kube-apiserver, by name.'),
  kubeControllerManager: extraArgs().optional().describe('Arguments of kube-controller-manager, by name.'),
  kubeScheduler: extraArgs().optional().describe('Arguments of kube-scheduler, by name.'),
  kubelet: extraArgs().optional().describe('Arguments of the kubelet, by name.'),
  kubeProxy: extraArgs().optional().describe('Arguments of kube-proxy, by name.'),
  etcd: extraArgs().optional().describe('Arguments of etcd, by name.'),
});

/** One range, or one of each address family. */
const immutableCidrs = () =>
  immutable(atomicList(cidr(), { maxItems: 2, minItems: 1 }), 'cannot be changed once the cluster stands');

/** What the configuration files of RKE2 and K3s have in common. Sources: their server configuration references. */
const rke2K3sOptions = {
  clusterCidrs: immutableCidrs()
    .optional()
    .describe('Addresses of pods, one range per address family. Default: 10.42.0.0/16.'),
  serviceCidrs: immutableCidrs()
    .optional()
    .describe('Addresses of Services, one range per address family. Default: 10.43.0.0/16.'),
  clusterDns: atomicList(ipAddress(), { maxItems: 2, minItems: 1 })
    .optional()
    .describe("Addresses of the cluster's DNS, inside the addresses of Services. Default: the tenth of them."),
  clusterDomain: immutable(domain()).optional().describe('Domain of the cluster. Default: cluster.local.'),
  serviceNodePortRange: nodePortRange.optional().describe('Ports of NodePort Services. Default: 30000-32767.'),
  registrationAddress: host()
    .optional()
    .describe('Name or address, in front of all servers, at which nodes join. Default: the first server.'),
  tlsSans: tlsSans.optional().describe("More names and addresses in the API server's certificate."),
  dataDir: immutable(dataDirectory())
    .optional()
    .describe(
      "Folder of the distribution's data on each machine, and of nothing else: it is deleted with the cluster.",
    ),
  etcdSnapshots: etcdSnapshots.optional().describe('Scheduled snapshots of etcd.'),
  registries: registries.optional().describe('Registries with mirrors, credentials or certificates of their own.'),
  systemDefaultRegistry: registryPrefix().optional().describe("Registry that the distribution's own images come from."),
  extraArgs: componentArgs.optional().describe('Further arguments of the Kubernetes components.'),
  protectKernelDefaults: z
    .boolean()
    .optional()
    .describe("Fail when the kernel's settings differ from what the kubelet wants, instead of changing them."),
  selinux: z.boolean().optional().describe('Have containerd use SELinux.'),
  upgradeStrategy: upgradeStrategy.optional().describe('How nodes are taken along when something changes.'),
};

const snapshots = z.object({
  enabled: z.boolean().default(true).describe('Take snapshots at an interval.'),
  intervalHours: z.int().min(1).max(8760).default(12).describe('Hours between two snapshots.'),
  retention: z.int().min(1).max(1000).default(6).describe('How many to keep.'),
  s3: snapshotStore.optional().describe('An object store to copy them to.'),
});

const rkeComponent = () => z.object({ extraArgs: extraArgs().optional().describe('Further arguments, by name.') });

const services = z.object({
  etcd: rkeComponent()
    .extend({ snapshots: snapshots.optional().describe('Snapshots at an interval.') })
    .optional()
    .describe('The key-value store.'),
  kubeApi: rkeComponent()
    .extend({
      serviceNodePortRange: nodePortRange.optional().describe('Ports of NodePort Services. Default: 30000-32767.'),
      alwaysPullImages: z.boolean().optional().describe('Check the right to an image whenever a pod starts.'),
      secretsEncryption: z.boolean().optional().describe('Encrypt Secrets in etcd.'),
      auditLog: z.boolean().optional().describe('Write an audit log.'),
    })
    .optional()
    .describe('kube-apiserver.'),
  kubeController: rkeComponent().optional().describe('kube-controller-manager.'),
  scheduler: rkeComponent().optional().describe('kube-scheduler.'),
  kubelet: rkeComponent()
    .extend({
      failSwapOn: z.boolean().optional().describe('Refuse to start while swap is on.'),
      generateServingCertificate: z.boolean().optional().describe("Have the cluster sign the kubelet's certificate."),
    })
    .optional()
    .describe('The kubelet.'),
  kubeproxy: rkeComponent().optional().describe('kube-proxy.'),
});

const network = z.object({
  plugin: immutable(z.enum(['canal', 'flannel', 'calico', 'weave', 'none']))
    .default('canal')
    .describe('The network plugin. Cannot be changed.'),
  mtu: z.int().min(0).max(65535).optional().describe('Largest packet of the pod network; 0 finds it out.'),
});

const rkeRegistry = z.object({
  url: registryPrefix().describe('The registry.'),
  credentialsSecretRef: secretRef.optional().describe('Secret with the keys username and password.'),
  isDefault: z.boolean().default(false).describe("RKE's own images come from here."),
});

/**
 * The options of the distribution `rke`, as its `cluster.yml` has them. Add-ons are not among them: what they
 * apply belongs in the cluster, not in its provisioning. Source: the reference of RKE's cluster
 * configuration.
 */
export const rkeOptions = z.object({
  clusterCidr: immutableCidr.optional().describe('Addresses of pods. Default: 10.42.0.0/16.'),
  serviceCidr: immutableCidr.optional().describe('Addresses of Services. Default: 10.43.0.0/16.'),
  clusterDns: ipAddress()
    .optional()
    .describe("Address of the cluster's DNS, inside the addresses of Services. Default: 10.43.0.10."),
  clusterDomain: immutable(domain()).optional().describe('Domain of the cluster. Default: cluster.local.'),
  network: network.optional().describe('The pod network.'),
  services: services.optional().describe('The Kubernetes components.'),
  tlsSans: tlsSans.optional().describe("More names and addresses in the API server's certificate."),
  authorization: z.enum(['rbac', 'none']).default('rbac').describe('How requests are authorized.'),
  ingressProvider: z.enum(['nginx', 'none']).optional().describe('The ingress controller. Default: nginx.'),
  dnsProvider: z.enum(['coredns', 'kube-dns', 'none']).optional().describe("The cluster's DNS. Default: coredns."),
  metricsProvider: z.enum(['metrics-server', 'none']).optional().describe('Resource metrics. Default: metrics-server.'),
  ignoreDockerVersion: z.boolean().optional().describe('Go on with a version of Docker that RKE does not know.'),
  enableCriDockerd: z.boolean().optional().describe('Reach Docker through cri-dockerd; Kubernetes 1.24 and later do.'),
  privateRegistries: listMap(rkeRegistry, ['url'], { maxItems: 32 })
    .optional()
    .describe('Registries with credentials of their own.'),
  upgradeStrategy: upgradeStrategy.optional().describe('How nodes are taken along when something changes.'),
});

const packagedComponent = () =>
  z
    .string()
    .max(63)
    .regex(/^rke2-[a-z0-9]+(-[a-z0-9]+)*$/, {
      error: 'must be the name of a packaged component, such as rke2-metrics-server',
    });

/** The options of the distribution `rke2`. Source: the reference of RKE2's server configuration. */
export const rke2Options = z.object({
  ...rke2K3sOptions,
  cni: immutable(z.enum(['canal', 'calico', 'cilium', 'flannel', 'none']))
    .default('canal')
    .describe('The network plugin. Cannot be changed.'),
  multus: z.boolean().optional().describe('Put Multus in front of the network plugin.'),
  disable: listSet(packagedComponent(), { maxItems: 16 })
    .optional()
    .describe('Packaged components that are not wanted, such as rke2-ingress-nginx.'),
  disableKubeProxy: z.boolean().optional().describe('Run no kube-proxy: the network plugin takes its place.'),
  disableCloudController: z.boolean().optional().describe('Do not run the cloud controller that RKE2 brings.'),
  ingressController: z
    .enum(['ingress-nginx', 'traefik', 'none'])
    .optional()
    .describe('The ingress controller, in versions that offer a choice.'),
  profile: z
    .enum(['cis', 'cis-1.23', 'cis-1.6'])
    .optional()
    .describe('Check and configure the machines by a CIS benchmark; which names are known depends on the version.'),
});

const datastore = withRule(
  z.object({
    type: immutable(z.enum(['etcd', 'sqlite', 'external']))
      .default('etcd')
      .describe('Embedded etcd, SQLite on the only server, or a database elsewhere. Cannot be changed.'),
    endpointSecretRef: secretKeyRef
      .optional()
      .describe('Where the external database is, with its credentials: the text of --datastore-endpoint.'),
  }),
  cel(
    '(self.type == "external") == has(self.endpointSecretRef)',
    'endpointSecretRef goes with an external datastore, and only with that',
  ),
  ({ type, endpointSecretRef }) => (type === 'external') === (endpointSecretRef !== undefined),
);

/** The options of the distribution `k3s`. Source: the reference of K3s' server configuration. */
export const k3sOptions = withRule(
  z.object({
    ...rke2K3sOptions,
    datastore: datastore.optional().describe("Where the cluster's objects are kept. Default: embedded etcd."),
    flannelBackend: immutable(z.enum(['vxlan', 'host-gw', 'wireguard-native', 'none']))
      .default('vxlan')
      .describe('How packets travel between nodes; none leaves it to a network plugin of your own. Cannot be changed.'),
    disable: listSet(z.enum(['coredns', 'servicelb', 'traefik', 'local-storage', 'metrics-server', 'runtimes']), {
      maxItems: 6,
    })
      .optional()
      .describe('Packaged components that are not wanted.'),
    disableNetworkPolicy: z.boolean().optional().describe('Do not run the network policy controller that K3s brings.'),
    disableKubeProxy: z.boolean().optional().describe('Run no kube-proxy: a network plugin takes its place.'),
    disableCloudController: z.boolean().optional().describe('Do not run the cloud controller that K3s brings.'),
    disableHelmController: z.boolean().optional().describe('Do not run the Helm controller that K3s brings.'),
    secretsEncryption: z.boolean().optional().describe('Encrypt Secrets in the datastore.'),
  }),
  cel(
    '!has(self.etcdSnapshots) || !has(self.datastore) || self.datastore.type == "etcd"',
    'etcdSnapshots need the datastore etcd',
    { fieldPath: '.etcdSnapshots' },
  ),
  (options) => options.etcdSnapshots === undefined || (options.datastore?.type ?? 'etcd') === 'etcd',
);

/** Where the installation script of RKE2 or K3s comes from. */
export const installer = withRule(
  z.object({
    url: endpointUrl()
      .optional()
      .describe("Address of the script. Default: the distribution's own, https://get.rke2.io or https://get.k3s.io."),
    path: absolutePath().optional().describe('The script as a file that exists on every machine.'),
    sha256: z
      .string()
      .max(64)
      .regex(/^[0-9a-f]{64}$/, { error: 'must be a SHA-256 in hex' })
      .optional()
      .describe('SHA-256 of the script, in hex: it is run only if it has it. Default: not checked.'),
    artifacts: absolutePath()
      .optional()
      .describe("Folder on every machine with the distribution's own files, for machines without internet."),
  }),
  cel('!has(self.url) || !has(self.path)', 'give one of url and path'),
  ({ url, path }) => url === undefined || path === undefined,
);
