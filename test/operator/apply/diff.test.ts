import { ChildComparison } from '../../../operator/apply/diff';
import { DroppedFields } from '../../../operator/informer/field-projection';

const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } };

function comparison(dropped = new DroppedFields(), of = DEPLOYMENT): ChildComparison {
  return new ChildComparison(of, dropped);
}

type Case = readonly [what: string, applied: unknown, live: unknown, difference: string | undefined];

function pod(container: object): object {
  return { spec: { containers: [{ name: 'c', ...container }] } };
}

const cases: readonly Case[] = [
  ['equal objects', { a: { b: [1] } }, { a: { b: [1] } }, undefined],
  ['another scalar', { spec: { a: 1 } }, { spec: { a: 2 } }, 'spec.a'],
  ['another type of scalar', { a: '1' }, { a: 1 }, 'a'],
  ['a field that is missing', { spec: { a: 1 } }, { spec: {} }, 'spec.a'],
  ['a map that is missing', { spec: { a: { b: 1 } } }, {}, 'spec.a.b'],
  ['fields by others', { a: 1 }, { a: 1, b: 2, status: { x: 1 } }, undefined],
  [
    'an empty map that is missing',
    { volumes: [{ name: 't', emptyDir: {} }] },
    { volumes: [{ name: 't' }] },
    'volumes[t].emptyDir',
  ],
  ['an empty list that is missing', { args: [] }, {}, 'args'],
  ['an empty map within an absent one', { a: { b: {} } }, {}, 'a.b'],
  ['an empty map that others have filled', { emptyDir: {} }, { emptyDir: { medium: 'Memory' } }, undefined],
  ['a list that should be empty', { args: [] }, { args: ['x'] }, 'args'],
  ['an undefined field', { a: undefined }, { a: 1 }, undefined],
  ['a null that is missing', { a: null }, {}, 'a'],
  ['a null that is something', { a: null }, { a: 0 }, 'a'],
  ['zero and false', { a: 0, b: false }, { a: 0, b: false }, undefined],
  ['a map where a scalar stands', { a: { b: 1 } }, { a: 'x' }, 'a'],
  ['a list where a map stands', { a: [1] }, { a: { 0: 1 } }, 'a'],
  ['a list where nothing stands', { a: [1] }, { a: null }, 'a'],
  ['labels', { metadata: { labels: { app: 'x' } } }, { metadata: { labels: { app: 'y' } } }, 'metadata.labels.app'],

  [
    'quantities of one value',
    pod({ resources: { limits: { cpu: '1000m' } } }),
    pod({ resources: { limits: { cpu: '1' } } }),
    undefined,
  ],
  [
    'quantities in other units',
    pod({ resources: { requests: { memory: '1Gi' } } }),
    pod({ resources: { requests: { memory: '1024Mi' } } }),
    undefined,
  ],
  ['quantities as numbers', { hard: { cpu: 2 } }, { hard: { cpu: '2' } }, undefined],
  [
    'other quantities',
    pod({ resources: { limits: { cpu: '1' } } }),
    pod({ resources: { limits: { cpu: '1m' } } }),
    'spec.containers[c].resources.limits.cpu',
  ],
  ['a quantity that is none', { limits: { cpu: '1' } }, { limits: { cpu: 'one' } }, 'limits.cpu'],
  ['what only looks like quantities', { data: { a: '1000m' } }, { data: { a: '1' } }, 'data.a'],
  [
    'annotations that look like quantities',
    { metadata: { annotations: { t: '1.0' } } },
    { metadata: { annotations: { t: '1' } } },
    'metadata.annotations.t',
  ],

  [
    'containers beside others',
    { containers: [{ name: 'a', image: 'i' }, { name: 'b' }] },
    { containers: [{ name: 'x' }, { name: 'a', image: 'i' }, { name: 'y' }, { name: 'b' }] },
    undefined,
  ],
  [
    'containers in another order',
    { containers: [{ name: 'b' }, { name: 'a', image: 'i' }] },
    { containers: [{ name: 'a', image: 'i' }, { name: 'b' }] },
    'containers[a]',
  ],
  ['a container that is missing', { containers: [{ name: 'a' }] }, { containers: [{ name: 'b' }] }, 'containers[a]'],
  [
    'a field of a container',
    { containers: [{ name: 'a', image: 'i' }] },
    { containers: [{ name: 'a', image: 'j' }] },
    'containers[a].image',
  ],
  [
    'env by name',
    pod({ env: [{ name: 'A', value: '1' }] }),
    pod({
      env: [
        { name: 'Z', value: '0' },
        { name: 'A', value: '2' },
      ],
    }),
    'spec.containers[c].env[A].value',
  ],
  [
    'mounts by path',
    pod({ volumeMounts: [{ name: 'v', mountPath: '/a' }] }),
    pod({
      volumeMounts: [
        { name: 'v', mountPath: '/b' },
        { name: 'v', mountPath: '/a' },
      ],
    }),
    undefined,
  ],
  [
    'owner references by uid',
    { ownerReferences: [{ uid: '1', name: 'a' }] },
    { ownerReferences: [{ uid: '2' }, { uid: '1', name: 'a' }] },
    undefined,
  ],
  [
    'a lost owner reference',
    { metadata: { ownerReferences: [{ uid: '1' }] } },
    { metadata: {} },
    'metadata.ownerReferences[1]',
  ],

  [
    'container ports with the protocol defaulted',
    pod({ ports: [{ containerPort: 80 }] }),
    pod({ ports: [{ containerPort: 80, protocol: 'TCP' }] }),
    undefined,
  ],
  [
    'container ports with the default written out',
    pod({ ports: [{ containerPort: 80, protocol: 'TCP' }] }),
    pod({ ports: [{ containerPort: 80 }] }),
    'spec.containers[c].ports[80,TCP]',
  ],
  [
    'one port twice, by protocol',
    pod({ ports: [{ containerPort: 53, protocol: 'UDP', name: 'u' }] }),
    pod({
      ports: [
        { containerPort: 53, protocol: 'TCP', name: 't' },
        { containerPort: 53, protocol: 'UDP', name: 'u' },
      ],
    }),
    undefined,
  ],
  [
    'a port by another protocol',
    pod({ ports: [{ containerPort: 53, protocol: 'UDP' }] }),
    pod({ ports: [{ containerPort: 53, protocol: 'TCP' }] }),
    'spec.containers[c].ports[53,UDP]',
  ],
  [
    'service ports by port',
    { ports: [{ port: 80, targetPort: 8080 }] },
    {
      ports: [
        { port: 443, protocol: 'TCP' },
        { port: 80, targetPort: 8080, protocol: 'TCP', nodePort: 3 },
      ],
    },
    undefined,
  ],
  [
    'another target of a service port',
    { ports: [{ port: 80, targetPort: 1 }] },
    { ports: [{ port: 80, targetPort: 2, protocol: 'TCP' }] },
    'ports[80].targetPort',
  ],
  ['an item of a list more', { ports: [{ endPort: 1 }] }, { ports: [{ endPort: 1 }, { endPort: 2 }] }, undefined],
  ['scalars in another order', { command: ['a', 'b'] }, { command: ['b', 'a'] }, 'command[1]'],
  ['a scalar less', { command: ['a', 'b'] }, { command: ['a'] }, 'command'],
  ['items with defaults', { metrics: [{ type: 'R' }] }, { metrics: [{ type: 'R', extra: 1 }] }, undefined],
  ['items without a name', { metrics: [{ r: { u: 81 } }] }, { metrics: [{ r: { u: 80 } }] }, 'metrics[0].r.u'],
  ['a set in another order', { finalizers: ['a', 'b'] }, { finalizers: ['c', 'b', 'a'] }, 'finalizers'],
  ['a set beside others', { finalizers: ['a', 'b'] }, { finalizers: ['c', 'a', 'b'] }, undefined],
  ['a set without a member', { finalizers: ['a'] }, { finalizers: ['b'] }, 'finalizers[0]'],
];

describe('firstDifference', () => {
  it.each(cases)('%s', (_, applied, live, difference) => {
    expect(comparison().firstDifference(applied, live)).toBe(difference);
  });
});

describe('firstUnowned', () => {
  const applied = {
    spec: {
      selector: { app: 'web' },
      containers: [{ name: 'a', image: 'i', args: ['x'] }, { name: 'b' }],
      volumes: [{ name: 'tmp', emptyDir: {} }],
    },
  };
  const live = {
    spec: {
      clusterIP: '10.0.0.1',
      selector: { app: 'web', tier: 'none' },
      containers: [{ name: 'foreign' }, { name: 'a', image: 'i', args: ['x'], tty: true }, { name: 'b' }],
      volumes: [{ name: 'tmp', emptyDir: { medium: 'Memory' } }],
    },
  };

  it.each([
    ['all is owned', undefined, undefined],
    ['defaults and items of others are not owned', { spec: { clusterIP: true, containers: { 0: true } } }, undefined],
    ['a field within an item of ours is not owned', { spec: { containers: { 1: { tty: true } } } }, undefined],
    [
      'a field within an empty map of ours is not owned',
      { spec: { volumes: { 0: { emptyDir: { medium: true } } } } },
      undefined,
    ],
    ['an atomic map is not owned', { spec: { selector: true } }, 'spec.selector'],
    ['a key that others added to a map is not owned', { spec: { selector: { tier: true } } }, undefined],
    ['an item is not owned', { spec: { containers: { 1: true } } }, 'spec.containers[a]'],
    ['a field is not owned and is exactly as applied', { spec: { containers: { 1: { image: true } } } }, undefined],
    ['a list is not owned and is exactly as applied', { spec: { containers: { 1: { args: true } } } }, undefined],
    ['an empty map is not owned', { spec: { volumes: { 0: { emptyDir: true } } } }, 'spec.volumes[tmp].emptyDir'],
    ['nothing is owned', true, ''],
  ] as const)('%s', (_, unowned, path) => {
    expect(comparison().firstDifference(applied, live)).toBeUndefined();
    expect(comparison().firstUnowned(applied, live, unowned)).toBe(path);
  });
});

describe('fields that the server drops when they are empty', () => {
  const applied = { containers: [{ name: 'a', args: [], env: [{ name: 'E', value: '' }], stdin: false }], labels: {} };
  const stored = { containers: [{ name: 'a', env: [{ name: 'E' }] }] };

  it('are learned from what it stores, and differ in no child of the type from then on', () => {
    const dropped = new DroppedFields();
    expect(comparison(dropped).firstDifference(applied, stored)).toBe('containers[a].args');
    expect(comparison(dropped).storedForm(applied, stored)).toBeUndefined();
    expect(comparison(dropped).firstDifference(applied, stored)).toBeUndefined();
    const another = { containers: [{ name: 'b', args: [], env: [{ name: 'F', value: '' }], stdin: false }] };
    expect(
      comparison(dropped).firstDifference(another, { containers: [{ name: 'b', env: [{ name: 'F' }] }] }),
    ).toBeUndefined();
  });

  it('still differ when they have a value, and in other types', () => {
    const dropped = new DroppedFields();
    comparison(dropped).storedForm(applied, stored);
    const set = { containers: [{ name: 'a', args: ['x'], env: [{ name: 'E', value: '' }], stdin: false }] };
    expect(comparison(dropped).firstDifference(set, stored)).toBe('containers[a].args');
    expect(comparison(dropped).firstDifference(applied, set)).toBe('containers[a].args');
    const other = comparison(dropped, { ...DEPLOYMENT, apiVersion: 'example.com/v1' });
    expect(other.firstDifference(applied, stored)).toBe('containers[a].args');
  });

  it('are only those that are empty: another field that is missing has been removed', () => {
    const dropped = new DroppedFields();
    expect(comparison(dropped).storedForm({ image: 'i' }, {})).toEqual({ image: expect.any(Symbol) as symbol });
    expect(comparison(dropped).firstDifference({ image: 'i' }, {})).toBe('image');
  });
});

test('the stored form has the values of the server where it stores others', () => {
  const applied = { sizeLimit: '1000m', list: [{ name: 'a', image: 'i' }], gone: 'x', same: { a: 1 } };
  const stored = { sizeLimit: '1', list: [{ name: 'a', image: 'mirror/i', tty: true }], same: { a: 1, b: 2 } };
  const form = comparison().storedForm(applied, stored);
  expect(form).toEqual({
    sizeLimit: '1',
    list: [{ name: 'a', image: 'mirror/i' }],
    gone: expect.any(Symbol) as symbol,
    same: { a: 1 },
  });
  expect(comparison().firstDifference(form, stored)).toBeUndefined();
});
