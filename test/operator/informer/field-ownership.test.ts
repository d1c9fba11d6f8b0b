import type { KubeObject } from '../../../constructs/kube/kube-object';
import { managedFieldsOf, unownedFields, type ManagedFieldsEntry } from '../../../operator/informer/field-ownership';

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

describe('unownedFields', () => {
  it('finds nothing when the manager owns all fields but the status', () => {
    expect(unownedFields(object([ours(OWNED)], spec), 'kindred')).toBeUndefined();
  });

  it('owns all of what is a leaf of the set: scalars, and maps and lists that are atomic or were empty', () => {
    const more = {
      ...spec,
      selector: { app: 'web', tier: 'x' },
      volumes: [{ name: 'tmp', emptyDir: { medium: 'M' } }],
    };
    expect(unownedFields(object([ours(OWNED)], more), 'kindred')).toBeUndefined();
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
    expect(unownedFields(object([ours(OWNED)], live), 'kindred')).toEqual(expected);
  });

  it('finds what is empty only where something is in it', () => {
    const live = { ...spec, podSelector: {}, list: [], text: '' };
    expect(unownedFields(object([ours(OWNED)], live), 'kindred')).toEqual({ spec: { text: true } });
  });

  it('looks at owner references, and at no other metadata', () => {
    const metadata = {
      labels: { app: 'web', more: 'x' },
      annotations: { 'example.com/a': 'b' },
      finalizers: ['example.com/c'],
      ownerReferences: [{ uid: '2' }, { uid: '1', controller: true }],
      generation: 4,
    };
    expect(unownedFields(object([ours(OWNED)], spec, metadata), 'kindred')).toEqual({
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
    expect(unownedFields(object([ours(owned)], live), 'kindred')).toEqual({
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
    expect(unownedFields(object([left, others as ManagedFieldsEntry], live), 'kindred')).toEqual({
      spec: { securityContext: { add: true } },
    });
    expect(unownedFields(object([left], live), 'kindred')).toBeUndefined();
  });

  it('takes what the manager applied and what it updated together', () => {
    const { 'f:spec': of, ...rest } = OWNED;
    const entries = [
      ours({ 'f:spec': { 'f:selector': {} } }),
      ours({ ...rest, 'f:spec': of }, { operation: 'Update' }),
    ];
    expect(unownedFields(object(entries, spec), 'kindred')).toBeUndefined();
  });

  it.each([
    ['of another manager', [ours(OWNED, { manager: 'kubectl' })]],
    ['of a subresource', [ours(OWNED, { subresource: 'scale' })]],
    ['without fields', [ours({})]],
    ['that were reset', []],
    ['that do not exist', undefined],
  ])('owns nothing by entries %s', (_, entries) => {
    expect(unownedFields(object(entries, spec), 'kindred')).toEqual({ spec: true });
  });

  it('does not take a map for owned of which only the map itself is', () => {
    // The API server writes a `.` that stands alone as an empty node; other writers of managedFields may not.
    const set = { 'f:spec': { ...OWNED['f:spec'], 'f:selector': { '.': {} } } };
    expect(unownedFields(object([ours(set)], spec), 'kindred')).toEqual({ spec: { selector: { app: true } } });
  });
});

test('managedFieldsOf an object that has none is empty', () => {
  expect(managedFieldsOf(object(undefined, {}))).toEqual([]);
  expect(managedFieldsOf(object([ours({})], {}))).toEqual([ours({})]);
});
