import type { KubeObject } from '../../../constructs/kube/kube-object';
import { breakingChanges, crdManifest } from '../../../constructs/crd';
import { KitchenSink } from './kitchen-sink';

type Schema = Record<string, unknown>;

function crd(
  field: Schema | undefined,
  more: { spec?: object; version?: object; required?: string[] } = {},
): KubeObject {
  const spec = {
    type: 'object',
    properties: { ...(field === undefined ? {} : { field }) },
    required: more.required ?? [],
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { kind: 'Widget', plural: 'widgets', singular: 'widget', shortNames: ['wd'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
          subresources: { status: {}, scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' } },
          ...more.version,
        },
      ],
      ...more.spec,
    },
  };
}

function lines(before: KubeObject, after: KubeObject): string[] {
  return breakingChanges(before, after).map(({ path, message }) => `${path}: ${message}`);
}

const text = { type: 'string' };
const rule = { rule: 'self > 0', message: 'm' };

test.each<[string, Schema | undefined, Schema | undefined, string]>([
  ['a field is gone', text, undefined, 'the field is gone'],
  ['another type', text, { type: 'integer' }, 'its type was "string", is "integer"'],
  ['a new bound', text, { ...text, maxLength: 5 }, 'maxLength 5 is new'],
  ['a lower maximum', { ...text, maxLength: 6 }, { ...text, maxLength: 5 }, 'maxLength was 6, is 5'],
  ['a higher minimum', { type: 'integer', minimum: 1 }, { type: 'integer', minimum: 2 }, 'minimum was 1, is 2'],
  [
    'an open end',
    { type: 'number', minimum: 0 },
    { type: 'number', minimum: 0, exclusiveMinimum: true },
    'the minimum 0 itself is no longer admitted',
  ],
  ['a new pattern', text, { ...text, pattern: '^a' }, 'pattern "^a" is new'],
  ['another pattern', { ...text, pattern: '^a' }, { ...text, pattern: '^b' }, 'pattern was "^a", is "^b"'],
  ['a new list of values', text, { ...text, enum: ['a'] }, 'it admits only ["a"] now'],
  ['a value fewer', { ...text, enum: ['a', 'b'] }, { ...text, enum: ['a'] }, 'the value "b" is no longer admitted'],
  ['a new rule', text, { ...text, 'x-kubernetes-validations': [rule] }, 'the rule self > 0 (m) is new'],
  [
    'a rule of another pattern',
    { ...text, pattern: '^a' },
    { ...text, 'x-kubernetes-validations': [{ rule: "self.matches('^b')", message: 'm' }] },
    "the rule self.matches('^b') (m) is new",
  ],
  [
    'a pattern that CEL reads otherwise',
    { ...text, pattern: String.raw`^[\d]` },
    { ...text, 'x-kubernetes-validations': [{ rule: String.raw`self.matches('^[\d]')`, message: 'm' }] },
    String.raw`the rule self.matches('^[\d]') (m) is new`,
  ],
  ['a new format', text, { ...text, format: 'date' }, 'the format "date" is new'],
  [
    'a narrower format',
    { type: 'integer', format: 'int64' },
    { type: 'integer', format: 'int32' },
    'its format was "int64", is "int32"',
  ],
  ['no null any more', { ...text, nullable: true }, text, 'it can no longer be null'],
  ['another default', { ...text, default: 'a' }, { ...text, default: 'b' }, 'default was "a", is "b"'],
  ['no default', { ...text, default: 'a' }, text, 'default was "a", is absent'],
  ['new alternatives', text, { ...text, anyOf: [{ pattern: 'a' }] }, 'anyOf [{"pattern":"a"}] is new'],
  [
    'another list type',
    { type: 'array', 'x-kubernetes-list-type': 'set' },
    { type: 'array' },
    'x-kubernetes-list-type was "set", is absent',
  ],
  [
    'no unknown fields any more',
    { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    { type: 'object' },
    'fields that it does not name are no longer kept',
  ],
  [
    'no keys any more',
    { type: 'object', additionalProperties: text },
    { type: 'object', properties: { a: text } },
    'it no longer takes any key',
  ],
])('%s', (_, before, after, expected) => {
  expect(lines(crd(before), crd(after))).toEqual([`v1 spec.field: ${expected}`]);
});

test('below lists and maps', () => {
  const list = (items: Schema): Schema => ({ type: 'array', items: { type: 'object', additionalProperties: items } });
  expect(lines(crd(list(text)), crd(list({ ...text, maxLength: 1 })))).toEqual([
    'v1 spec.field[].*: maxLength 1 is new',
  ]);
});

test('requirements', () => {
  expect(lines(crd(text), crd(text, { required: ['field'] }))).toEqual(['v1 spec.field: the field is required now']);
  expect(lines(crd(undefined), crd(text, { required: ['field'] }))).toEqual(['v1 spec.field: a required field is new']);
  expect(lines(crd(text), crd({ ...text, default: 'a' }, { required: ['field'] }))).toEqual([]);
});

test('what the CRD is called and served as', () => {
  const names = { kind: 'Gadget', plural: 'gadgets', singular: 'gadget' };
  expect(lines(crd(text), crd(text, { spec: { scope: 'Cluster', group: 'example.org', names } }))).toEqual([
    'spec.group: was example.com, is example.org',
    'spec.scope: was Namespaced, is Cluster',
    'spec.names.kind: was Widget, is Gadget',
    'spec.names.plural: was widgets, is gadgets',
    'spec.names.singular: was widget, is gadget',
    'spec.names.shortNames: "wd" is gone',
  ]);
  expect(lines(crd(text), crd(text, { version: { name: 'v2' } }))[0]).toContain('v1: the version is gone');
  expect(lines(crd(text), crd(text, { version: { served: false } }))).toEqual(['v1: the version is no longer served']);
  expect(
    lines(crd(text), crd(text, { version: { subresources: { scale: { specReplicasPath: '.spec.n' } } } })),
  ).toEqual([
    'v1 subresources.status: is gone',
    'v1 subresources.scale.specReplicasPath: was .spec.size, is .spec.n',
    'v1 subresources.scale.statusReplicasPath: was .status.size, is gone',
  ]);
});

test.each<[string, Schema | undefined, Schema | undefined]>([
  ['a new optional field', undefined, text],
  ['a higher maximum', { ...text, maxLength: 5 }, { ...text, maxLength: 6 }],
  ['no bound any more', { ...text, maxLength: 5 }, text],
  ['no pattern any more', { ...text, pattern: 'a' }, text],
  [
    'the pattern as a rule',
    { ...text, pattern: '^a' },
    { ...text, 'x-kubernetes-validations': [{ rule: "self.matches('^a')", message: 'm' }] },
  ],
  ['a value more', { ...text, enum: ['a'] }, { ...text, enum: ['b', 'a'] }],
  ['no list of values any more', { ...text, enum: ['a'] }, text],
  ['no rule any more', { ...text, 'x-kubernetes-validations': [rule] }, text],
  [
    'another message',
    { ...text, 'x-kubernetes-validations': [rule] },
    { ...text, 'x-kubernetes-validations': [{ ...rule, message: 'n' }] },
  ],
  ['a wider format', { type: 'integer', format: 'int32' }, { type: 'integer', format: 'int64' }],
  ['null as well', text, { ...text, nullable: true }],
  ['a new default', text, { ...text, default: 'a' }],
  ['another description', { ...text, description: 'a' }, { ...text, description: 'b' }],
])('%s breaks nothing', (_, before, after) => {
  expect(lines(crd(before), crd(after))).toEqual([]);
});

test('a CRD breaks nothing of itself', () => {
  expect(breakingChanges(crdManifest(KitchenSink), crdManifest(KitchenSink))).toEqual([]);
});
