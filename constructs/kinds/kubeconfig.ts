import { z } from 'zod';
import { cel } from '../kind/schema/cel';
import { withRule } from '../kind/fields';
import { defineKind, type KindObject } from '../kind/kind';
import { owned } from '../kube/resource-type';
import { filePath, secretKeyRef } from './cluster-fields';
import { dateTimeField } from './common-fields';

const PROBE_SECONDS = 300;

/**
 * A kubeconfig, and whether the API server behind it responds. A Cluster creates one of its own name on
 * success; users may create others.
 *
 * Its probe is an effect, not an `observe`: it calls another cluster than the object's own, takes time and
 * may fail. It runs again every five minutes even if its input is the same.
 */
export const Kubeconfig = defineKind({
  group: 'clusterprovisioner.rke.io',
  version: 'v1alpha1',
  kind: 'Kubeconfig',
  plural: 'kubeconfigs',
  scope: 'Cluster',
  description:
    'A kubeconfig, and whether the API behind it answers. Refused in it: exec, auth-provider, file paths, proxy-url and insecure TLS.',
  spec: withRule(
    z.object({
      configPath: filePath()
        .optional()
        .describe(
          "Path of a kubeconfig inside the provisioner's configured directory; an absolute path must lie in it too.",
        ),
      secretRef: secretKeyRef.optional().describe('A kubeconfig in a Secret.'),
    }),
    cel('has(self.configPath) != has(self.secretRef)', 'give exactly one of configPath and secretRef'),
    (spec) => (spec.configPath === undefined) !== (spec.secretRef === undefined),
  ),
  status: z.object({
    server: z.string().max(2048).optional().describe('Address of the API server.'),
    kubernetesVersion: z.string().max(64).optional().describe('Version that the API server reports.'),
    certificateExpiry: dateTimeField()
      .optional()
      .describe('When the first of the certificates in the kubeconfig expires.'),
  }),
  columns: [
    { name: 'Server', type: 'string', jsonPath: '.status.server' },
    { name: 'Version', type: 'string', jsonPath: '.status.kubernetesVersion' },
    // A string, since kubectl shows a date by its age, and this one is in the future.
    { name: 'Expires', type: 'string', jsonPath: '.status.certificateExpiry' },
  ],
  owns: [],
  reads: [
    {
      name: 'kubeconfig',
      type: owned.Secret,
      refs: ({ spec }) => (spec.secretRef === undefined ? [] : [spec.secretRef]),
    },
  ],
  effects: [
    {
      name: 'probe',
      phase: 'apply',
      plan: 'kubeconfig.probe',
      input: ({ spec: { configPath, secretRef } }, read) => ({
        ...(configPath === undefined ? {} : { file: configPath, digest: read.fileDigest(configPath) }),
        ...(secretRef === undefined ? {} : { secret: secretRef, digest: read.digest(owned.Secret, secretRef) }),
      }),
      files: ({ spec }) => (spec.configPath === undefined ? [] : [spec.configPath]),
      timeoutSeconds: 30,
      maxAttempts: () => 3,
      everySeconds: PROBE_SECONDS,
    },
  ],
  samples: [{ name: 'clusteraws-user', spec: { configPath: 'config/rkespec/kube_config_cluster_aws.yml' } }],
  children() {
    // None: it only probes.
  },
});
export type Kubeconfig = KindObject<typeof Kubeconfig>;
