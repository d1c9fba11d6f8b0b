import { z } from 'zod';
import { listMap, listSet } from '../kind/fields';
import {
  host,
  hostKey,
  ipAddress,
  labelKey,
  labelValue,
  linuxUser,
  nodeLabels,
  nodeName,
  sshKeyRef,
} from './cluster-fields';

/** What a machine does for its cluster. */
export const nodeRole = z.enum(['controlplane', 'etcd', 'worker']);

/** How many machines one Cluster may have. */
export const MAX_NODES = 200;

const port = () => z.int().min(1).max(65535).default(22);

const taint = z.object({
  key: labelKey().describe('Key of the taint.'),
  value: labelValue().optional().describe('Value of the taint.'),
  effect: z
    .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
    .describe('What happens to pods that do not tolerate the taint.'),
});

const bastion = z.object({
  address: host().describe('Host name or IP address of the bastion.'),
  port: port().describe("Port of the bastion's SSH server."),
  user: linuxUser().describe('User to log in to the bastion as.'),
  hostKey: hostKey()
    .optional()
    .describe("The bastion's public host key. Default: the one seen first, which is held from then on."),
  sshKeySecretRef: sshKeyRef.optional().describe("Private key for the bastion. Default: the cluster's."),
});

const node = z.object({
  address: host().describe('Host name or IP address at which SSH reaches the machine. Tells the nodes apart.'),
  port: port().describe("Port of the machine's SSH server."),
  user: linuxUser().describe(
    'User to log in as: with RKE a member of the group docker; else root, or a user who may use sudo without a password.',
  ),
  roles: listSet(nodeRole, { maxItems: 3, minItems: 1 }).describe('What the machine does: controlplane, etcd, worker.'),
  internalAddress: ipAddress()
    .optional()
    .describe('IP address at which the nodes reach each other. Default: the address.'),
  hostnameOverride: nodeName()
    .optional()
    .describe("Name of the node in the cluster. Default: the machine's host name."),
  labels: nodeLabels().optional().describe('Labels of the node in the cluster.'),
  taints: listMap(taint, ['key', 'effect'], { maxItems: 32 }).optional().describe('Taints of the node in the cluster.'),
  hostKey: hostKey()
    .optional()
    .describe("The machine's public host key. Default: the one seen first, which is held from then on."),
  bastion: bastion.optional().describe('A machine to go through.'),
});

/** The machines of a cluster, identified by their addresses. */
export const nodes = listMap(node, ['address'], { maxItems: MAX_NODES, minItems: 1 });

/** Host keys of machines that a cluster.yml names: it has no field for them. */
export const hostKeys = listMap(
  z.object({
    address: host().describe('Address of the machine, or of the bastion, as the cluster.yml has it.'),
    hostKey: hostKey().describe("The machine's public host key."),
  }),
  ['address'],
  { maxItems: MAX_NODES + 1 },
);
