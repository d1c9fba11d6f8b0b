import { App, Chart } from 'cdk8s';
import { z } from 'zod';
import { cel } from '../../../constructs/core/cel';
import { defineKind } from '../../../constructs/core/kind';
import { CustomResourceDefinition, crdManifest } from '../../../constructs/crd';

const common = {
  group: 'test.example.com',
  version: 'v1beta1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Cluster' as const,
  description: 'A widget.',
  owns: [],
  children: () => undefined,
};
const Plain = defineKind({ ...common, spec: z.object({ a: z.int().optional().describe('A.') }) });

interface Version {
  readonly additionalPrinterColumns: readonly { name: string; jsonPath: string }[];
  readonly schema: { readonly openAPIV3Schema: Record<string, unknown> };
  readonly subresources: object;
}
function versionOf(kind: Parameters<typeof crdManifest>[0]): Version {
  return (crdManifest(kind).spec as { versions: [Version] }).versions[0];
}

test('a kind with everything', () => {
  const Widget = defineKind({
    ...common,
    singular: 'widgety',
    shortNames: ['wd'],
    categories: ['all', 'kindred'],
    crdAnnotations: { note: 'x' },
    spec: z.object({ size: z.int32().min(0).max(9).describe('S.') }),
    status: z.object({ size: z.int32().optional().describe('S.'), selector: z.string().optional().describe('L.') }),
    columns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size', description: 'S.', priority: 1 }],
    scale: {
      specReplicasPath: '.spec.size',
      statusReplicasPath: '.status.size',
      labelSelectorPath: '.status.selector',
    },
    names: { format: 'dns-label' },
    rules: [cel('self.spec.size < 5', 'small only')],
  });
  const app = new App();
  const crd = new CustomResourceDefinition(
    new Chart(app, 'chart', { namespace: 'n', labels: { of: 'chart' } }),
    'crd',
    { kind: Widget },
  );
  expect(crd.toJson()).toMatchSnapshot();
});

test('the spec is required only where a field of it is', () => {
  const Required = defineKind({ ...common, spec: z.object({ a: z.int().describe('A.') }) });
  expect(versionOf(Plain).schema.openAPIV3Schema.required).toBeUndefined();
  expect(versionOf(Required).schema.openAPIV3Schema.required).toEqual(['spec']);
});

test('a kind without rules has none on the root', () => {
  expect(versionOf(Plain).schema.openAPIV3Schema).not.toHaveProperty('x-kubernetes-validations');
});

test('Ready and Age follow the columns, once', () => {
  expect(versionOf(Plain).additionalPrinterColumns.map(({ name }) => name)).toEqual(['Ready', 'Age']);
  const Own = defineKind({
    ...common,
    spec: Plain.spec,
    columns: [{ name: 'Ready', type: 'integer', jsonPath: '.spec.a' }],
  });
  expect(versionOf(Own).additionalPrinterColumns.map(({ jsonPath }) => jsonPath)).toEqual([
    '.spec.a',
    '.metadata.creationTimestamp',
  ]);
});

test('the manifest is the same each time, and shares nothing with the kind', () => {
  const manifest = crdManifest(Plain);
  expect(JSON.stringify(crdManifest(Plain))).toBe(JSON.stringify(manifest));
  (manifest.metadata.labels as Record<string, string>).x = 'y';
  expect(crdManifest(Plain).metadata.labels).toEqual({ 'app.kubernetes.io/part-of': 'kindred' });
});
