import { z } from 'zod';
import { cel } from '../../core/cel';
import { immutable, listSet, withRule } from '../../core/fields';
import { secretKeyRef } from './cluster-fields';
import { serverOptions } from './cluster-options';

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
    ...serverOptions,
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
