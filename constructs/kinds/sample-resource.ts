import { k8s } from 'cdk8s-plus-27';
import { z } from 'zod';
import { defineKind, type KindObject } from '../kind/kind';
import { owned } from '../kube/resource-type';
import { imageField } from './common-fields';

/** One pod of an image. */
export const SampleResource = defineKind({
  group: 'example.com',
  version: 'v1',
  kind: 'SampleResource',
  plural: 'sampleresources',
  scope: 'Namespaced',
  description: 'One pod of an image.',
  spec: z.object({
    podImage: imageField().describe('Container image of the pod.'),
  }),
  status: z.object({
    readyReplicas: z.int32().min(0).optional().describe('1 while the pod is ready, else 0.'),
  }),
  columns: [{ name: 'Image', type: 'string', jsonPath: '.spec.podImage' }],
  names: { format: 'dns-subdomain', maxLength: 63 },
  owns: [owned.Deployment],
  samples: [{ name: 'sample', spec: { podImage: 'nginx:latest' } }],
  children(scope, self) {
    const labels = { app: self.metadata.name };
    new k8s.KubeDeployment(scope, 'deployment', {
      metadata: { name: self.metadata.name, labels },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: 'pod', image: self.spec.podImage }] },
        },
      },
    });
  },
  observe: ({ children }) => ({ readyReplicas: children.one(owned.Deployment)?.status?.readyReplicas ?? 0 }),
});
export type SampleResource = KindObject<typeof SampleResource>;
