// The gate keeps the same property with fewer runs, and what lost a cluster once: transitions.property.test.ts.
import { servers, expectedState, type Spec } from '../../support/cluster-specs';
import { expectTransition, Provisioner, testTransitions } from './transitions';

const WHEN = ['before', 'middle', 'after'] as const;

test.each([
  ['fewer servers', servers(1, 2, 3), servers(1)],
  ['only the last stays', servers(1, 2, 3), servers(3)],
])('%s, cut at each step, and then the ones before again', async (_, one, other) => {
  let at = 0;
  for (let complete = false; !complete; at++) {
    for (const when of WHEN) {
      const provisioner = new Provisioner();
      await provisioner.up(one);
      complete = (await provisioner.up(other, { cut: { at, when } }))?.complete === true;
      const back = [...other, ...one.filter((each) => !other.some(([number]) => number === each[0]))];
      const errors = (await provisioner.up(back))?.errors;
      expect({ at, when, errors, ...provisioner.state }).toEqual({ at, when, errors: [], ...expectedState(back) });
    }
  }
  expect(at).toBeGreaterThan(10);
});

test.each<[string, Spec, Spec]>([
  [
    'a member of etcd without a node',
    servers(1),
    [
      [1, 'all'],
      [5, 'all'],
      [2, 'agent'],
      [4, 'all'],
      [3, 'agent'],
    ],
  ],
  [
    'servers with etcd alone',
    [
      [1, 'all'],
      [2, 'etcd'],
      [3, 'etcd'],
    ],
    [
      [1, 'all'],
      [3, 'etcd'],
      [4, 'etcd'],
    ],
  ],
  [
    'the last member of etcd beside two with the API',
    [
      [4, 'etcd'],
      [1, 'api'],
    ],
    [
      [4, 'etcd'],
      [2, 'api'],
      [1, 'api'],
    ],
  ],
])('%s: cut at each step, and back or on', async (_, one, other) => {
  for (const [first, second] of [
    [one, other],
    [other, one],
  ] as const)
    for (const third of [first, second])
      for (let at = 0; at < 40; at++)
        for (const when of WHEN) await expectTransition(first, second, third, { at, when });
});

testTransitions(150);
