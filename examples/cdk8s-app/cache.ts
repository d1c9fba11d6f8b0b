import { k8s } from 'cdk8s-plus-27';
import { defineKind, owned } from 'kindred/constructs';
import type { KindObject } from 'kindred/constructs';
import { z } from 'zod';

/** A kind of this app's own: memcached and the Service in front of it. */
export const Cache = defineKind({
  group: 'shop.example.com',
  version: 'v1',
  kind: 'Cache',
  plural: 'caches',
  scope: 'Namespaced',
  description: 'A memcached.',
  spec: z.object({
    megabytes: z.int32().min(16).max(65536).default(64).describe('Memory for items.'),
  }),
  // The Service bears the object's name.
  names: { format: 'dns-1035-label' },
  owns: [owned.Deployment, owned.Service],
  children(scope, self) {
    const labels = { app: self.metadata.name };
    new k8s.KubeDeployment(scope, 'deployment', {
      metadata: { name: self.metadata.name, labels },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            containers: [
              {
                name: 'memcached',
                image: 'memcached:1.6',
                args: ['-m', String(self.spec.megabytes)],
                ports: [{ name: 'memcached', containerPort: 11211 }],
              },
            ],
          },
        },
      },
    });
    new k8s.KubeService(scope, 'service', {
      metadata: { name: self.metadata.name, labels },
      spec: {
        selector: labels,
        ports: [{ name: 'memcached', port: 11211, targetPort: k8s.IntOrString.fromString('memcached') }],
      },
    });
  },
});
export type Cache = KindObject<typeof Cache>;
