import { firstDifference } from '../../../operator/apply/diff';

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
  ['an empty map that the server dropped', { metadata: { annotations: {} } }, { metadata: {} }, undefined],
  ['an empty list that the server dropped', { args: [] }, {}, undefined],
  ['an empty map within an absent one', { a: { b: {} } }, {}, undefined],
  ['a list that should be empty', { args: [] }, { args: ['x'] }, 'args'],
  ['an undefined field', { a: undefined }, { a: 1 }, undefined],
  ['a null that the server dropped', { a: null }, {}, undefined],
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
    'containers by name, in any order, beside others',
    { containers: [{ name: 'b' }, { name: 'a', image: 'i' }] },
    { containers: [{ name: 'x' }, { name: 'a', image: 'i' }, { name: 'b' }] },
    undefined,
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
    'spec.containers[c].ports[80,TCP].protocol',
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
    'ports[80,undefined].targetPort',
  ],
  [
    'ports of neither kind are atomic',
    { ports: [{ endPort: 1 }] },
    { ports: [{ endPort: 1 }, { endPort: 2 }] },
    'ports',
  ],

  ['atomic lists in order', { command: ['a', 'b'] }, { command: ['b', 'a'] }, 'command[0]'],
  ['atomic lists with more items', { command: ['a'] }, { command: ['a', 'b'] }, 'command'],
  [
    'atomic lists of maps, items defaulted',
    { metrics: [{ type: 'R' }] },
    { metrics: [{ type: 'R', extra: 1 }] },
    undefined,
  ],
  ['atomic lists of maps', { metrics: [{ r: { u: 81 } }] }, { metrics: [{ r: { u: 80 } }] }, 'metrics[0].r.u'],
  ['sets in any order, beside others', { finalizers: ['a', 'b'] }, { finalizers: ['c', 'b', 'a'] }, undefined],
  ['a set without a member', { finalizers: ['a'] }, { finalizers: ['b'] }, 'finalizers'],
];

describe('firstDifference', () => {
  it.each(cases)('%s', (_, applied, live, difference) => {
    expect(firstDifference(applied, live)).toBe(difference);
  });
});
