import { INTERRUPTED, WALK, expectOnAndBack, expectWalk } from './platform-changes';
import type { Values, Walk } from './platform-changes';

// The gate keeps a key and an interrupted change of these: transitions.test.ts.

// Several runs of the SDK a test, on whatever machine.
jest.setTimeout(900_000);

/** The other keys that a platform is made of, with values to go between, and what must be set besides. */
const keys: readonly (readonly [key: string, values: readonly unknown[], besides?: Values])[] = [
  ['namespace', ['kindred-system', 'ops']],
  ['operatorImage', ['r/op:1', 'r/op:2']],
  ['provisionerImage', ['r/pro:1', 'r/pro:2'], { provisioner: true }],
  ['provisionerSecretNamespaces', [[], ['machines']], { provisioner: true }],
  ['provisionerConfigSecret', ['', 'files'], { provisioner: true }],
  ['provisionerConfigFiles', [{}, { 'a/b.yml': 'b' }], { provisioner: true, provisionerConfigSecret: 'files' }],
  ['replicas', [2, 0, 3]],
  ['kinds', [['HelloApp'], ['Foo'], ['HelloApp', 'Foo']]],
  ['kinds', [['HelloApp'], ['Foo']], { samples: true }],
  ['watchNamespaces', [[], ['shop'], ['machines', 'shop']]],
  [
    'guardedNamespaces',
    [[], ['shop'], [{ name: 'made', create: true }], [{ name: 'shop', quota: { 'limits.cpu': 4 } }]],
  ],
  ['samples', [false, true]],
  ['samplesNamespace', ['kindred-samples', 'demo'], { samples: true }],
  ['monitoring', [false, true]],
  ['monitoringLabels', [{}, { release: 'p' }], { monitoring: true }],
  ['protect', [false, true]],
];

test.each(keys.map(([key, choices, besides = {}]): Walk => [key, choices, besides]))(WALK, expectWalk);

const bothWays: readonly (readonly [Values, Values])[] = [
  [{ provisioner: false }, { provisioner: true }],
  [{ kinds: ['HelloApp'], samples: true }, { kinds: ['Foo'] }],
  [{ watchNamespaces: [] }, { watchNamespaces: ['machines', 'shop'] }],
  [{ guardedNamespaces: [{ name: 'made', create: true }] }, { guardedNamespaces: ['shop'], monitoring: true }],
];

/**
 * What adds and takes away objects. Not another namespace of the samples: as all that stands alone, they are made there
 * before they go here, so that an interrupted run has to be carried on before it can be taken back.
 */
const pairs: readonly (readonly [Values, Values])[] = [
  // The way there is in the gate.
  [{ namespace: 'ops' }, { namespace: 'kindred-system' }],
  ...bothWays.flatMap(([a, b]) => [[a, b] as const, [b, a] as const]),
];

test.each(pairs)(INTERRUPTED, expectOnAndBack);
