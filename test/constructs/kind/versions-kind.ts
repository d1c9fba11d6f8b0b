import { k8s } from 'cdk8s-plus-27';
import { z } from 'zod';
import { defineKind } from '../../../constructs/kind/kind';
import { cel } from '../../../constructs/kind/schema/cel';
import { owned } from '../../../constructs/kube/resource-type';

/** A kind of three versions, each of which holds something that the others cannot. */
export const Shop = defineKind({
  group: 'test.example.com',
  version: 'v1',
  kind: 'Shop',
  plural: 'shops',
  scope: 'Namespaced',
  description: 'A shop.',
  spec: z.object({
    image: z.string().min(1).max(200).describe('Image.'),
    size: z.int32().min(0).default(1).describe('Number of pods.'),
    limits: z
      .object({
        cpu: z.string().max(20).optional().describe('CPU.'),
        memory: z.string().max(20).optional().describe('Memory.'),
      })
      .optional()
      .describe('Limits.'),
    ports: z.array(z.int32()).max(8).optional().describe('Ports.'),
  }),
  owns: [],
  children() {
    // None: this kind is about its versions.
  },
  versions: [
    {
      version: 'v1beta1',
      spec: z.object({
        image: z.string().min(1).max(200).describe('Image.'),
        replicas: z.int32().min(0).max(10).optional().describe('Number of pods; 1 when absent.'),
        memory: z.string().max(20).optional().describe('Memory limit.'),
      }),
      columns: [{ name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' }],
      deprecated: true,
      deprecationWarning: 'test.example.com/v1beta1 Shop goes in 2.0; use v1',
      toCurrent: ({ image, replicas, memory }) => ({
        image,
        ...(replicas === undefined ? {} : { size: replicas }),
        ...(memory === undefined ? {} : { limits: { memory } }),
      }),
      fromCurrent: ({ image, size, limits }) => ({ image, replicas: size, memory: limits?.memory }),
    },
    {
      version: 'v1alpha1',
      served: false,
      spec: z.object({
        image: z.string().min(1).max(200).describe('Image.'),
        owner: z.string().max(50).optional().describe('Who it belongs to.'),
      }),
      rules: [cel('self.metadata.name != "none"', 'a shop has a name')],
      toCurrent: ({ image }) => ({ image }),
      fromCurrent: ({ image }) => ({ image }),
    },
  ],
});

/** A kind with a child, whose old version admits what the current one does not. */
export const Stall = defineKind({
  group: 'test.example.com',
  version: 'v1',
  kind: 'Stall',
  plural: 'stalls',
  scope: 'Namespaced',
  description: 'A stall.',
  spec: z.object({ seats: z.int32().min(0).max(100).describe('Seats.') }),
  status: z.object({ built: z.string().optional().describe('What was built.') }),
  owns: [owned.ConfigMap],
  children(scope, { metadata, spec }) {
    new k8s.KubeConfigMap(scope, 'map', { metadata: { name: metadata.name }, data: { seats: String(spec.seats) } });
  },
  observe: ({ children }) => {
    const built = children.one(owned.ConfigMap)?.metadata.name;
    return built === undefined ? {} : { built };
  },
  versions: [
    {
      version: 'v1beta1',
      spec: z.object({ chairs: z.string().max(10).describe('Seats, in digits.') }),
      toCurrent: ({ chairs }) => ({ seats: Number(chairs) }),
      fromCurrent: ({ seats }) => ({ chairs: String(seats) }),
    },
  ],
});
