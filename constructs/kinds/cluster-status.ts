import { z } from 'zod';
import { listMap } from '../core/fields';
import { secretKeyRef } from '../provision/config/cluster-fields';
import { MAX_NODES, nodeRole } from '../provision/config/cluster-node';

const appliedConfig = z.object({
  text: z.string().max(524288).optional().describe('The configuration, with everything secret taken out.'),
  sha256: z
    .string()
    .max(64)
    .regex(/^[0-9a-f]{64}$/)
    .optional()
    .describe('SHA-256 of the configuration as it was applied, in hex.'),
});

const node = z.object({
  address: z.string().max(253).describe('Address of the machine, as in the spec.'),
  roles: z.array(nodeRole).max(3).optional().describe('What the machine does.'),
  state: z
    .enum(['Pending', 'Provisioning', 'Ready', 'Failed', 'Removing', 'Removed'])
    .optional()
    .describe('How far the machine is.'),
  version: z.string().max(64).optional().describe('Version that runs on it.'),
  message: z.string().max(4096).optional().describe('What went wrong, or is being done.'),
});

/** The status of a Cluster. */
export const clusterStatus = z.object({
  appliedConfig: appliedConfig.optional().describe('What was applied last.'),
  nodes: listMap(node, ['address'], { maxItems: MAX_NODES }).optional().describe('The machines, one by one.'),
  attempts: z
    .int32()
    .min(0)
    .optional()
    .describe('Runs begun for this generation or, once the object is being deleted, for its removal.'),
  kubeconfigRef: secretKeyRef.optional().describe("The cluster's kubeconfig, once it is provisioned."),
});
