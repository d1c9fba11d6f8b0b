import { k8s } from 'cdk8s-plus-27';
import { z } from 'zod';
import { dnsSubdomain } from '../kind/fields';
import { defineKind, type KindObject } from '../kind/kind';
import { owned } from '../kube/resource-type';

/** The kind of Kubernetes' sample-controller: an nginx Deployment under a name of the user's choice. */
export const Foo = defineKind({
  group: 'samplecontroller.k8s.io',
  version: 'v1alpha1',
  kind: 'Foo',
  plural: 'foos',
  scope: 'Namespaced',
  description: 'An nginx Deployment under a name of its own.',
  crdAnnotations: { 'api-approved.kubernetes.io': 'unapproved, sample only' },
  spec: z.object({
    deploymentName: dnsSubdomain().describe('Name of the Deployment. A new name replaces the Deployment.'),
    replicas: z.int32().min(1).max(10).default(1).describe('Number of pods.'),
  }),
  status: z.object({
    availableReplicas: z.int32().min(0).optional().describe('Number of pods available.'),
  }),
  columns: [
    { name: 'Deployment', type: 'string', jsonPath: '.spec.deploymentName' },
    { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' },
    { name: 'Available', type: 'integer', jsonPath: '.status.availableReplicas' },
  ],
  // The name is the value of a label.
  names: { format: 'dns-subdomain', maxLength: 63 },
  owns: [owned.Deployment],
  syncedEvent: () => ({ reason: 'Synced', message: 'Foo synced successfully' }),
  samples: [{ name: 'example-foo', spec: { deploymentName: 'example-foo', replicas: 1 } }],
  children(scope, self) {
    const labels = { app: 'nginx', controller: self.metadata.name };
    new k8s.KubeDeployment(scope, 'deployment', {
      metadata: { name: self.spec.deploymentName, labels },
      spec: {
        replicas: self.spec.replicas,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: 'nginx', image: 'nginx:latest' }] },
        },
      },
    });
  },
  observe: ({ children }) => ({ availableReplicas: children.one(owned.Deployment)?.status?.availableReplicas ?? 0 }),
});
export type Foo = KindObject<typeof Foo>;
