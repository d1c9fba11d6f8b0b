import { z } from 'zod';
import { atomicList, immutable, listMap, listSet } from '../../core/fields';
import {
  bucketName,
  cidr,
  dataFolder,
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
import { cronSchedule } from '../../core/cron-schedule';

/** Options that several distributions have. */

/** A range of addresses that a running cluster cannot change. */
export const fixedCidr = immutable(cidr(), 'cannot be changed: running pods and Services have addresses in it');

/** The ports of Services of type NodePort. */
export const nodePortRange = z
  .string()
  .max(11)
  .regex(/^[1-9][0-9]{0,4}-[1-9][0-9]{0,4}$/, { error: 'must be a range of ports such as 30000-32767' });

/** More names and addresses in the API server's certificate. */
export const tlsSans = listSet(host(), { maxItems: 64 });

/** Where snapshots of etcd go besides the machine's own disk. */
export const snapshotStore = z.object({
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
export const etcdSnapshots = z.object({
  enabled: z.boolean().default(true).describe('Take snapshots on a schedule.'),
  schedule: cronSchedule().optional().describe('When: five fields, or @daily and the like. Default: every 12 hours.'),
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

/** Registries with mirrors, credentials or certificates of their own: containerd's side of RKE2 and K3s. */
export const registries = listMap(registry, ['host'], { maxItems: 32 });

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

/** How nodes are taken along when something changes. */
export const upgradeStrategy = z.object({
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
const cidrs = () =>
  immutable(atomicList(cidr(), { maxItems: 2, minItems: 1 }), 'cannot be changed once the cluster stands');

/** What the configuration files of RKE2 and K3s have in common. Sources: their server configuration references. */
export const serverOptions = {
  clusterCidrs: cidrs().optional().describe('Addresses of pods, one range per address family. Default: 10.42.0.0/16.'),
  serviceCidrs: cidrs()
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
  dataDir: immutable(dataFolder())
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
