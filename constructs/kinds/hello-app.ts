import { k8s } from 'cdk8s-plus-27';
import { z } from 'zod';
import { defineKind, type KindObject } from '../kind/kind';
import { owned } from '../kube/resource-type';
import { imageField, replicasField } from './common-fields';

/** A web application: a number of identical pods. */
export const HelloApp = defineKind({
  group: 'apps.anupam.com',
  version: 'v1',
  kind: 'HelloApp',
  plural: 'helloapps',
  scope: 'Namespaced',
  description: 'A web application that runs a number of identical pods.',
  spec: z.object({
    image: imageField().describe('Container image of the application.'),
    size: replicasField().default(1).describe('Number of pods.'),
  }),
  status: z.object({
    replicas: z.int32().min(0).optional().describe('Number of pods that exist.'),
    readyReplicas: z.int32().min(0).optional().describe('Number of pods that are ready.'),
    selector: z.string().max(128).optional().describe('Label selector of the pods, for autoscalers.'),
  }),
  columns: [
    { name: 'Image', type: 'string', jsonPath: '.spec.image' },
    { name: 'Size', type: 'integer', jsonPath: '.spec.size', description: 'Number of pods wanted.' },
    { name: 'Pods', type: 'integer', jsonPath: '.status.readyReplicas', description: 'Number of pods ready.' },
  ],
  scale: {
    specReplicasPath: '.spec.size',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  },
  names: { format: 'dns-subdomain', maxLength: 63 },
  owns: [owned.Deployment],
  samples: [{ name: 'helloapp-sample', spec: { image: 'nginx:latest', size: 1 } }],
  children(scope, self) {
    const labels = { app: self.metadata.name };
    new k8s.KubeDeployment(scope, 'deployment', {
      metadata: { name: self.metadata.name, labels },
      spec: {
        replicas: self.spec.size,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: 'helloapp', image: self.spec.image }] },
        },
      },
    });
  },
  observe({ self, children }) {
    const status = children.one(owned.Deployment)?.status;
    return {
      replicas: status?.replicas ?? 0,
      readyReplicas: status?.readyReplicas ?? 0,
      selector: `app=${self.metadata.name}`,
    };
  },
});
export type HelloApp = KindObject<typeof HelloApp>;
