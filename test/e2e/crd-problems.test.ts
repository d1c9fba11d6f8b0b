import { z } from 'zod';
import { crdManifest } from '../../constructs/crd';
import { defineKind, type AnyKind, type KindProps } from '../../constructs/kind/kind';
import { mapOf } from '../../constructs/kind/fields';
import { cel } from '../../constructs/kind/schema/cel';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { useSharedControlPlane } from '../support/shared-control-plane';
import { Api } from './crds/api';

const plane = useSharedControlPlane();
let api: Api;
beforeAll(async () => {
  api = await Api.of(plane.adminKubeconfig);
}, 60_000);
afterAll(() => api.close());

const spec = z.object({ image: z.string().max(50).optional().describe('Image.') });
type Props = KindProps<typeof spec, z.ZodObject>;
const sound = {
  ...{ group: 'problems.example.com', version: 'v1', kind: 'Thing', plural: 'things', scope: 'Namespaced' },
  ...{ description: 'A thing.', owns: [], children: () => undefined, spec },
} as const;
const define = (change: Partial<Props>): AnyKind => defineKind({ ...sound, ...change } as Props);
const column = { name: 'Image', type: 'string', jsonPath: '.spec.image' } as const;
const priorities = (priority: number): Partial<Props> => ({ columns: [{ ...column, priority }] });
const approval = (text: string): Partial<Props> => ({
  ...{ group: 'problems.k8s.io', crdAnnotations: { 'api-approved.kubernetes.io': text } },
});
const length = (max: number): z.ZodObject => z.object({ image: z.string().max(max).describe('Image.') });
const sizes = (max: number): Partial<Props> => ({ spec: length(max) as unknown as typeof spec });
const longGroup = (last: number): string =>
  [...Array.from({ length: 3 }, () => 'g'.repeat(60)), 'g'.repeat(last), 'com'].join('.');

/** What the server refuses in the CRD of a sound kind to which the same is done. */
async function answer(change: Partial<Props>, edit: (crd: Crd) => void): Promise<number> {
  const crd = structuredClone(crdManifest(define(change))) as unknown as Crd;
  edit(crd);
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All&fieldValidation=Strict';
  return (await api.ask('POST', path, crd)).status;
}

interface Crd extends KubeObject {
  readonly metadata: KubeObject['metadata'] & { name: string; annotations: Record<string, string> };
  readonly spec: {
    group: string;
    scope: string;
    versions: [{ additionalPrinterColumns: object[]; schema: { openAPIV3Schema: Record<string, unknown> } }];
  };
}
const setColumn =
  (change: object) =>
  ({ spec: { versions } }: Crd): void =>
    void (versions[0].additionalPrinterColumns[0] = { ...column, ...change });
const setRule =
  (rule: string) =>
  ({ spec: { versions } }: Crd): void =>
    void (versions[0].schema.openAPIV3Schema['x-kubernetes-validations'] = [{ rule, message: 'm' }]);

// Each is refused by the server as well, so that nothing is refused here in vain; and what is next to it by neither.
test.each<[string, Partial<Props>, string, Partial<Props>, (crd: Crd) => void]>([
  [
    'a name of the CRD that is too long',
    { group: longGroup(60) },
    'group: the CRD is called <plural>.<group>, which has 254 characters; at most 253 are allowed',
    { group: longGroup(59) },
    (crd) => {
      crd.spec.group = longGroup(60);
      crd.metadata.name = `things.${longGroup(60)}`;
    },
  ],
  [
    'a scope that there is not',
    { scope: 'namespaced' as 'Namespaced' },
    'scope: "namespaced" is none of Namespaced, Cluster',
    {},
    (crd) => void (crd.spec.scope = 'namespaced'),
  ],
  [
    'a column without a name',
    { columns: [{ ...column, name: '' }] },
    'columns[0].name: it is empty',
    { columns: [column] },
    setColumn({ name: '' }),
  ],
  [
    'a column of another type',
    { columns: [{ ...column, type: 'text' as 'string' }] },
    'columns[0].type: "text" is none of string, integer, number, boolean, date',
    { columns: [column] },
    setColumn({ type: 'text' }),
  ],
  [
    'a fractional priority',
    priorities(1.5),
    'columns[0].priority: 1.5 is no integer of 32 bits',
    priorities(-1),
    setColumn({ priority: 1.5 }),
  ],
  [
    'a large priority',
    priorities(2 ** 31),
    'columns[0].priority: 2147483648 is no integer of 32 bits',
    priorities(2 ** 31 - 1),
    setColumn({ priority: 2 ** 31 }),
  ],
  [
    'an annotation whose key is none',
    { crdAnnotations: { 'not a key': 'x' } },
    'crdAnnotations["not a key"]: "not a key" must be at most 63 letters',
    { crdAnnotations: { 'Example.com/A_key.1': 'x' } },
    (crd) => void (crd.metadata.annotations = { 'not a key': 'x' }),
  ],
  [
    'annotations that are too long',
    { crdAnnotations: { a: 'x'.repeat(262_144) } },
    'crdAnnotations: they have 262145 bytes; an object may have 262144',
    { crdAnnotations: { a: 'x'.repeat(262_143) } },
    (crd) => void (crd.metadata.annotations = { a: 'x'.repeat(262_144) }),
  ],
  [
    'an approval that is none',
    approval('yes'),
    'crdAnnotations["api-approved.kubernetes.io"]: "yes" is neither a URL nor begins with "unapproved"',
    approval('https://example.com/approval'),
    (crd) => void (crd.metadata.annotations['api-approved.kubernetes.io'] = 'yes'),
  ],
  [
    'a rule on a field that there is not',
    { rules: [cel('has(self.spec.image) && self.spec.imgae == ""', 'm')] },
    'reads self.spec.imgae, which is no field; self.spec has image',
    { rules: [cel('has(self.spec.image) && self.kind == "Thing" && self.spec.image.size() > 1', 'm')] },
    setRule('has(self.spec.image) && self.spec.imgae == ""'),
  ],
  [
    'a rule with half a bracket',
    { rules: [cel('(self.metadata.name == ")"', 'm')] },
    'has a "(" without its other half',
    { rules: [cel('(self.metadata.name == ")")', 'm')] },
    setRule('(self.metadata.name == ")"'),
  ],
])('refused here as by the server: %s', async (_, change, problem, next, edit) => {
  expect(() => define(change)).toThrow(problem);
  expect(await answer(next, () => undefined)).toBe(201);
  expect(await answer(next, edit)).toBeGreaterThanOrEqual(400);
});

test('refused here: what the server would refuse of samples, of a finalizer, of sizes', () => {
  const samples = [{ name: 'a' }, { name: 'a', labels: { 'no key': 'x', key: 'no value' } }, { name: 'No' }];
  for (const problem of [
    'samples[1].name: "a" is the name of samples[0] already',
    'samples[1].labels["no key"]: "no key" must be at most 63 letters',
    'samples[1].labels.key: "no value" must be a text of at most 63 letters',
    'samples[2].name: "No" must be at most 253 characters',
  ]) {
    expect(() => define({ samples })).toThrow(problem);
  }
  const finalizer = (name: string): Partial<Props> => ({ finalizer: { name, propagation: 'Foreground' } });
  expect(() => define(finalizer('-a.example.com/x'))).toThrow('finalizer.name: what is before the "/"');
  expect(() => define(finalizer(`a.example.com/${'x'.repeat(64)}`))).toThrow('finalizer.name: "xxx');
  expect(define(finalizer('a.example.com/x')).finalizer?.name).toBe('a.example.com/x');
  expect(() => define(sizes(2.5))).toThrow('spec.image: maxLength 2.5 must be an integer');
});

test.each([
  'self.spec.my__dash__field == "a" || self.spec.a__dot__b == ""',
  'self.spec.labels.some == "a"',
  'self.spec.list.all(x, x.name != "" && self.spec.list.exists(y, y.name == x.name))',
  'self.apiVersion != "" && self.kind == "Thing" && self.metadata.name.startsWith("a(")',
  'self.spec.image.size() > 0 && oldSelf.spec.image == self.spec.image',
  'self.spec.?image.orValue("") == r"[" || self.spec.image.matches("^[a(]$")',
])('let pass here as by the server: the rule %s', async (rule) => {
  const fields = {
    image: z.string().max(10).default('').describe('Image.'),
    'my-field': z.string().max(10).default('').describe('Field.'),
    'a.b': z.string().max(10).default('').describe('Field.'),
    labels: mapOf(z.string().max(10), { maxProperties: 5 }).default({}).describe('Labels.'),
    list: z
      .array(z.object({ name: z.string().max(10).describe('Name.') }))
      .max(5)
      .default([])
      .describe('List.'),
  };
  const change = { spec: z.object(fields), rules: [cel(rule, 'm')] } as unknown as Partial<Props>;
  expect(await answer(change, () => undefined)).toBe(201);
});
