import type { KubeObject } from '../../../constructs/kube/kube-object';
import {
  changedFields,
  differenceOf,
  fieldsMissingIn,
  firstPath,
  intersectionOf,
  managedFieldsOf,
  type FieldSet,
  ownedFields,
  unownedFields,
  type ManagedFieldsEntry,
  type UnownedFields,
} from '../../../operator/informer/field-ownership';

const CONTAINERS = {
  'k:{"name":"main"}': {
    '.': {},
    'f:name': {},
    'f:image': {},
    'f:args': {},
    'f:ports': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {}, 'f:protocol': {} } },
  },
};
const OWNED = {
  'f:metadata': {
    'f:labels': { 'f:app': {} },
    'f:finalizers': { 'v:"example.com/a\\u003cb"': {} },
    'f:ownerReferences': { 'k:{"uid":"1"}': {} },
  },
  'f:spec': {
    'f:selector': {},
    'f:volumes': { 'k:{"name":"tmp"}': { 'f:name': {}, 'f:emptyDir': {} } },
    'f:containers': CONTAINERS,
  },
};

function object(
  managedFields: readonly ManagedFieldsEntry[] | undefined,
  spec: object,
  metadata: object = {},
): KubeObject {
  const meta = { name: 'web', uid: 'u', ...(managedFields && { managedFields }), ...metadata };
  return { apiVersion: 'v1', kind: 'Thing', metadata: meta, spec, status: { ready: true } };
}

const ours = (fieldsV1: object, more: Partial<ManagedFieldsEntry> = {}): ManagedFieldsEntry =>
  ({ manager: 'kindred', operation: 'Apply', fieldsV1, ...more }) as ManagedFieldsEntry;

const spec = {
  selector: { app: 'web' },
  volumes: [{ name: 'tmp', emptyDir: {} }],
  containers: [{ name: 'main', image: 'i', args: ['a'], ports: [{ containerPort: 80, protocol: 'TCP' }] }],
};

const unowned = (live: KubeObject): UnownedFields | undefined => unownedFields(live, ownedFields(live, 'kindred'));

describe('unownedFields', () => {
  it('finds nothing when the manager owns all fields but the status', () => {
    expect(unowned(object([ours(OWNED)], spec))).toBeUndefined();
  });

  it('owns all of what is a leaf of the set: scalars, and maps and lists that are atomic or were empty', () => {
    const more = {
      ...spec,
      selector: { app: 'web', tier: 'x' },
      volumes: [{ name: 'tmp', emptyDir: { medium: 'M' } }],
    };
    expect(unowned(object([ours(OWNED)], more))).toBeUndefined();
  });

  it.each([
    ['a default', { ...spec, replicas: 1 }, { spec: { replicas: true } }],
    ['a volume of another', { ...spec, volumes: [{ name: 'x' }, ...spec.volumes] }, { spec: { volumes: { 0: true } } }],
    [
      'a port of another, and a field in a container',
      { ...spec, containers: [{ ...spec.containers[0], tty: true, ports: [{ containerPort: 80, protocol: 'UDP' }] }] },
      { spec: { containers: { 0: { tty: true, ports: { 0: true } } } } },
    ],
    [
      'a source that replaced ours',
      { ...spec, volumes: [{ name: 'tmp', hostPath: { path: '/' } }] },
      { spec: { volumes: { 0: { hostPath: true } } } },
    ],
  ])('finds %s', (_, live, expected) => {
    expect(unowned(object([ours(OWNED)], live))).toEqual(expected);
  });

  it('finds what is empty only where something is in it', () => {
    const live = { ...spec, podSelector: {}, list: [], text: '' };
    expect(unowned(object([ours(OWNED)], live))).toEqual({ spec: { text: true } });
  });

  it('looks at owner references, and at no other metadata', () => {
    const metadata = {
      labels: { app: 'web', more: 'x' },
      annotations: { 'example.com/a': 'b' },
      finalizers: ['example.com/c'],
      ownerReferences: [{ uid: '2' }, { uid: '1', controller: true }],
      generation: 4,
    };
    expect(unowned(object([ours(OWNED)], spec, metadata))).toEqual({
      metadata: { ownerReferences: { 0: true } },
    });
  });

  it('finds members of sets and items of lists, whatever characters are in their keys', () => {
    const owned = {
      'f:spec': {
        'f:set': { 'v:"a\\u003cb"': {} },
        'f:list': { 'k:{"host":"a\\u0026\\u2028\u00e9","port":1}': { '.': {} } },
      },
    };
    const live = {
      set: ['a<b', 'c'],
      list: [
        { host: 'a&\u2028\u00e9', port: 1 },
        { host: 'b', port: 1 },
      ],
    };
    expect(unowned(object([ours(owned)], live))).toEqual({
      spec: { set: { 1: true }, list: { 0: { host: true, port: true }, 1: true } },
    });
  });

  it('does not own what others have in a map or list of which only the map or list itself is left', () => {
    const others = {
      manager: 'kubectl',
      operation: 'Update',
      fieldsV1: { 'f:spec': { 'f:securityContext': { 'f:add': {} } } },
    };
    const live = { securityContext: { add: ['SYS_ADMIN'] } };
    const left = ours({ 'f:spec': { 'f:securityContext': {} } }, { operation: 'Update' });
    expect(unowned(object([left, others as ManagedFieldsEntry], live))).toEqual({
      spec: { securityContext: { add: true } },
    });
    expect(unowned(object([left], live))).toBeUndefined();
  });

  it('takes what the manager applied and what it updated together', () => {
    const { 'f:spec': of, ...rest } = OWNED;
    const entries = [
      ours({ 'f:spec': { 'f:selector': {} } }),
      ours({ ...rest, 'f:spec': of }, { operation: 'Update' }),
    ];
    expect(unowned(object(entries, spec))).toBeUndefined();
  });

  it.each([
    ['of another manager', [ours(OWNED, { manager: 'kubectl' })]],
    ['of a subresource', [ours(OWNED, { subresource: 'scale' })]],
    ['without fields', [ours({})]],
    ['that were reset', []],
    ['that do not exist', undefined],
  ])('owns nothing by entries %s', (_, entries) => {
    expect(unowned(object(entries, spec))).toEqual({ spec: true });
  });

  it('does not take a map for owned of which only the map itself is', () => {
    // The API server writes a `.` that stands alone as an empty node; other writers of managedFields may not.
    const set = { 'f:spec': { ...OWNED['f:spec'], 'f:selector': { '.': {} } } };
    expect(unowned(object([ours(set)], spec))).toEqual({ spec: { selector: { app: true } } });
  });
});

test('managedFieldsOf an object that has none is empty', () => {
  expect(managedFieldsOf(object(undefined, {}))).toEqual([]);
  expect(managedFieldsOf(object([ours({})], {}))).toEqual([ours({})]);
});

describe('sets of fields', () => {
  const set = { 'f:a': {}, 'f:b': { '.': {}, 'f:c': {}, 'f:d': { 'f:e': {} } } };

  it.each([
    ['nothing in common', { 'f:x': {} }, undefined, set],
    ['all of it', set, set, undefined],
    ['a field', { 'f:a': {} }, { 'f:a': {} }, { 'f:b': set['f:b'] }],
    [
      'a map without what is in it',
      { 'f:b': {} },
      { 'f:b': {} },
      { 'f:a': {}, 'f:b': { 'f:c': {}, 'f:d': { 'f:e': {} } } },
    ],
    [
      'what is in a map, without the map',
      { 'f:b': { 'f:c': {} } },
      { 'f:b': { 'f:c': {} } },
      { 'f:a': {}, 'f:b': { '.': {}, 'f:d': { 'f:e': {} } } },
    ],
  ])('that share %s', (_, other, both, rest) => {
    expect(intersectionOf(set, other)).toEqual(both);
    expect(differenceOf(set, other)).toEqual(rest);
  });

  it.each<[what: string, FieldSet, manifest: object, missing: FieldSet | undefined]>([
    ['has every field', { 'f:a': {}, 'f:b': { 'f:c': {} } }, { a: 1, b: { c: '' } }, undefined],
    ['lacks a field', { 'f:a': {}, 'f:b': {} }, { b: false }, { 'f:a': {} }],
    ['has null', { 'f:a': {} }, { a: null }, { 'f:a': {} }],
    ['lacks a map', { 'f:b': { '.': {}, 'f:c': {} } }, {}, { 'f:b': { '.': {}, 'f:c': {} } }],
    ['has the map without its field', { 'f:b': { '.': {}, 'f:c': {} } }, { b: {} }, { 'f:b': { 'f:c': {} } }],
    ['has a scalar instead of the map', { 'f:b': { 'f:c': {} } }, { b: 'text' }, { 'f:b': { 'f:c': {} } }],
    [
      'lacks an item',
      { 'f:l': { 'k:{"name":"x"}': { '.': {}, 'f:v': {} }, 'k:{"name":"y"}': { '.': {} } } },
      { l: [{ name: 'y' }] },
      { 'f:l': { 'k:{"name":"x"}': { '.': {}, 'f:v': {} } } },
    ],
    [
      'has the port of the default protocol',
      { 'f:l': { 'k:{"port":53,"protocol":"TCP"}': {}, 'k:{"port":53,"protocol":"UDP"}': {} } },
      { l: [{ port: 53 }] },
      { 'f:l': { 'k:{"port":53,"protocol":"UDP"}': {} } },
    ],
    [
      'leaves a key of a custom type to its default',
      { 'f:l': { 'k:{"host":"b","zone":80}': {} } },
      { l: [{ host: 'b' }] },
      undefined,
    ],
    [
      'lacks a member of a set',
      { 'f:l': { 'v:"one"': {}, 'v:"two"': {} } },
      { l: ['two'] },
      { 'f:l': { 'v:"one"': {} } },
    ],
  ])('of which a manifest %s', (_, fields, manifest, missing) => {
    expect(fieldsMissingIn(fields, manifest)).toEqual(missing);
  });

  it('of which some values have changed', () => {
    const fields = { 'f:a': {}, 'f:b': {}, 'f:c': { 'f:d': {}, 'f:e': {} }, 'f:f': { '.': {}, 'f:g': {} } };
    const before = { a: 1, b: [1], c: { d: 'x', e: 'y' }, f: { g: 1 } };
    expect(changedFields(fields, before, before)).toBeUndefined();
    expect(changedFields(fields, before, { a: 2, b: [1], c: { d: 'x' } })).toEqual({
      'f:a': {},
      'f:c': { 'f:e': {} },
      'f:f': { '.': {}, 'f:g': {} },
    });
  });

  it.each([
    [{ 'f:spec': { '.': {}, 'f:timeZone': {} } }, '.spec.timeZone'],
    [{ 'f:l': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:name': {} } } }, '.l[80,TCP].name'],
    [{ 'f:finalizers': { 'v:"example.com/a"': {} } }, '.finalizers[example.com/a]'],
  ])('%j is told as %s', (fields, path) => {
    expect(firstPath(fields)).toBe(path);
  });
});
