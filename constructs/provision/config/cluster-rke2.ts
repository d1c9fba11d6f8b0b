import { z } from 'zod';
import { immutable, listSet } from '../../core/fields';
import { serverOptions } from './cluster-options';

const component = () =>
  z
    .string()
    .max(63)
    .regex(/^rke2-[a-z0-9]+(-[a-z0-9]+)*$/, {
      error: 'must be the name of a packaged component, such as rke2-metrics-server',
    });

/** The options of the distribution `rke2`. Source: the reference of RKE2's server configuration. */
export const rke2Options = z.object({
  ...serverOptions,
  cni: immutable(z.enum(['canal', 'calico', 'cilium', 'flannel', 'none']))
    .default('canal')
    .describe('The network plugin. Cannot be changed.'),
  multus: z.boolean().optional().describe('Put Multus in front of the network plugin.'),
  disable: listSet(component(), { maxItems: 16 })
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
