import { App, Chart } from 'cdk8s';
import { z } from 'zod';
import { cel } from '../../../constructs/kind/schema/cel';
import { InvalidObjectError } from '../../../constructs/kube/errors';
import { withRule } from '../../../constructs/kind/fields';
import { defineKind } from '../../../constructs/kind/kind';
import { validateObject } from '../../../constructs/kind/validate';
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

describe('the spec is required', () => {
  const pair = z.object({ a: z.int().optional().describe('A.'), b: z.int().optional().describe('B.') });
  const one = cel('has(self.a) || has(self.b)', 'give a or b');
  const both = cel('has(self.a) == has(self.b)', 'give both or neither');
  const then = cel('has(self.a) == has(oldSelf.a)', 'a stays as it is');
  const bothGiven = ({ a, b }: z.output<typeof pair>): boolean => (a === undefined) === (b === undefined);

  test.each<[string, z.ZodObject]>([
    ['a field of it is', z.object({ a: z.int().describe('A.') })],
    ['an empty one breaks a rule', withRule(pair, one, ({ a, b }) => a !== undefined || b !== undefined)],
    ['only the server can tell whether it does', withRule(pair, one)],
    ["one of several rules is the server's alone", withRule(withRule(pair, both, bothGiven), one).describe('D.')],
    ['a rule looks at new objects too', withRule(pair, cel(then.rule, 'm', { optionalOldSelf: true }))],
    ['a text of a rule is all that looks back', withRule(pair, cel('has(self.a) || "oldSelf" != ""', 'm'))],
  ])('where %s', (_, spec) => {
    const kind = defineKind({ ...common, spec });
    expect(versionOf(kind).schema.openAPIV3Schema.required).toEqual(['spec']);
    const { apiVersion } = kind;
    const without = { apiVersion, kind: 'Widget', metadata: { name: 'w' } };
    expect(() => validateObject(kind, without)).toThrow(InvalidObjectError);
  });

  test.each<[string, z.ZodObject]>([
    ['nothing in it is', Plain.spec],
    ['an empty one keeps every rule', withRule(pair, both, bothGiven).describe('D.')],
    ['a rule compares with what stood before', withRule(pair, then)],
    ["the rule of a field is the server's alone", z.object({ p: withRule(pair, one).optional().describe('P.') })],
  ])('not where %s', (_, spec) => {
    const kind = defineKind({ ...common, spec });
    expect(versionOf(kind).schema.openAPIV3Schema.required).toBeUndefined();
    const { apiVersion } = kind;
    expect(validateObject(kind, { apiVersion, kind: 'Widget', metadata: { name: 'w' } }).spec).toEqual({});
  });
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
