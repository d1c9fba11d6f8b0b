import { k8s } from 'cdk8s-plus-27';
import { z } from 'zod';
import { defineKind, type KindObject } from '../kind/kind';
import { owned } from '../kube/resource-type';
import { imageField } from './common-fields';

/** A micro service on port 9898. Its Deployment is deleted before the object is. */
export const DemoMicroService = defineKind({
  group: 'devops.my.domain',
  version: 'v1',
  kind: 'DemoMicroService',
  plural: 'demomicroservices',
  shortNames: ['dms'],
  scope: 'Namespaced',
  description: 'A micro service on port 9898. Its Deployment is gone before the object goes.',
  spec: z.object({
    image: imageField().describe('Container image of the service.'),
  }),
  status: z.object({
    readyReplicas: z.int32().min(0).optional().describe('Number of pods that are ready.'),
  }),
  columns: [{ name: 'Image', type: 'string', jsonPath: '.spec.image' }],
  names: { format: 'dns-label' },
  finalizer: { name: 'demomicroservice.finalizers.devops.my.domain', propagation: 'Foreground' },
  owns: [owned.Deployment],
  samples: [{ name: 'demomicroservice-sample', spec: { image: 'stefanprodan/podinfo:0.0.1' } }],
  children(scope, self) {
    const { name } = self.metadata;
    const labels = { app: name };
    new k8s.KubeDeployment(scope, 'deployment', {
      metadata: { name, labels },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            containers: [
              {
                name,
                image: self.spec.image,
                imagePullPolicy: 'Always',
                ports: [{ containerPort: 9898, protocol: 'TCP' }],
              },
            ],
          },
        },
      },
    });
  },
  observe: ({ children }) => ({ readyReplicas: children.one(owned.Deployment)?.status?.readyReplicas ?? 0 }),
});
export type DemoMicroService = KindObject<typeof DemoMicroService>;
