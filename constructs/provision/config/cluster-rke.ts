import { z } from 'zod';
import { immutable, listMap } from '../../core/fields';
import { domain, extraArgs, ipAddress, registryPrefix, secretRef } from './cluster-fields';
import { fixedCidr, nodePortRange, snapshotStore, tlsSans, upgradeStrategy } from './cluster-options';

/** Options of RKE, as its `cluster.yml` has them. Add-ons are refused: what they apply belongs into the cluster, not into its making. */

const snapshots = z.object({
  enabled: z.boolean().default(true).describe('Take snapshots at an interval.'),
  intervalHours: z.int().min(1).max(8760).default(12).describe('Hours between two snapshots.'),
  retention: z.int().min(1).max(1000).default(6).describe('How many to keep.'),
  s3: snapshotStore.optional().describe('An object store to copy them to.'),
});

const component = () => z.object({ extraArgs: extraArgs().optional().describe('Further arguments, by name.') });

const services = z.object({
  etcd: component()
    .extend({ snapshots: snapshots.optional().describe('Snapshots at an interval.') })
    .optional()
    .describe('The key-value store.'),
  kubeApi: component()
    .extend({
      serviceNodePortRange: nodePortRange.optional().describe('Ports of NodePort Services. Default: 30000-32767.'),
      alwaysPullImages: z.boolean().optional().describe('Check the right to an image whenever a pod starts.'),
      secretsEncryption: z.boolean().optional().describe('Encrypt Secrets in etcd.'),
      auditLog: z.boolean().optional().describe('Write an audit log.'),
    })
    .optional()
    .describe('kube-apiserver.'),
  kubeController: component().optional().describe('kube-controller-manager.'),
  scheduler: component().optional().describe('kube-scheduler.'),
  kubelet: component()
    .extend({
      failSwapOn: z.boolean().optional().describe('Refuse to start while swap is on.'),
      generateServingCertificate: z.boolean().optional().describe("Have the cluster sign the kubelet's certificate."),
    })
    .optional()
    .describe('The kubelet.'),
  kubeproxy: component().optional().describe('kube-proxy.'),
});

const network = z.object({
  plugin: immutable(z.enum(['canal', 'flannel', 'calico', 'weave', 'none']))
    .default('canal')
    .describe('The network plugin. Cannot be changed.'),
  mtu: z.int().min(0).max(65535).optional().describe('Largest packet of the pod network; 0 finds it out.'),
});

const registry = z.object({
  url: registryPrefix().describe('The registry.'),
  credentialsSecretRef: secretRef.optional().describe('Secret with the keys username and password.'),
  isDefault: z.boolean().default(false).describe("RKE's own images come from here."),
});

/** The options of the distribution `rke`. Source: the reference of RKE's cluster configuration. */
export const rkeOptions = z.object({
  clusterCidr: fixedCidr.optional().describe('Addresses of pods. Default: 10.42.0.0/16.'),
  serviceCidr: fixedCidr.optional().describe('Addresses of Services. Default: 10.43.0.0/16.'),
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
  privateRegistries: listMap(registry, ['url'], { maxItems: 32 })
    .optional()
    .describe('Registries with credentials of their own.'),
  upgradeStrategy: upgradeStrategy.optional().describe('How nodes are taken along when something changes.'),
});
