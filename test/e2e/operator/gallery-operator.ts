import { ApiObject } from 'cdk8s';
import { z } from 'zod';
import { defineKind } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { main } from '../../../operator/main';

const sizes: Readonly<Record<string, { readonly width: string }>> = { small: { width: '100' } };

/** A kind whose code fails on some of its objects. */
export const Gallery = defineKind({
  group: 'gallery.example.com',
  version: 'v1',
  kind: 'Gallery',
  plural: 'galleries',
  scope: 'Namespaced',
  description: 'A gallery.',
  spec: z.object({
    title: z.string().max(100).describe('Letters a only, or rendering never ends.'),
    size: z.string().max(20).default('small').describe('One that is not known makes rendering fail.'),
  }),
  owns: [owned.ConfigMap],
  children(scope, { metadata: { name }, spec: { title, size } }) {
    const isPlain = /^(a+)+$/.test(title);
    const data = { title, isPlain: String(isPlain), width: sizes[size]!.width };
    new ApiObject(scope, 'map', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
  },
});

if (require.main === module) main({ kinds: [Gallery] });
