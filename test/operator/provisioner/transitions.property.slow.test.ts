// The gate keeps the same property with fewer runs, and what lost a cluster once: transitions.property.test.ts.
import { servers, wantedState } from '../../support/cluster-specs';
import { Provisioner, testTransitions } from './transitions';

test.each([
  ['fewer servers', servers(1, 2, 3), servers(1)],
  ['only the last stays', servers(1, 2, 3), servers(3)],
])('%s, cut at each step, and then the ones before again', async (_, one, other) => {
  let at = 0;
  for (let complete = false; !complete; at++) {
    for (const when of ['before', 'middle', 'after'] as const) {
      const provisioner = new Provisioner();
      await provisioner.up(one);
      complete = (await provisioner.up(other, { cut: { at, when } }))?.complete === true;
      const back = [...other, ...one.filter((each) => !other.some(([number]) => number === each[0]))];
      const errors = (await provisioner.up(back))?.errors;
      expect({ at, when, errors, ...provisioner.state }).toEqual({ at, when, errors: [], ...wantedState(back) });
    }
  }
  expect(at).toBeGreaterThan(10);
});

// One way in some thousands fails, and is not mended yet: seed -1236703661, path 148:3:3:4:5:0:1. An interrupted run takes a machine out of
// etcd's members and does not come to its uninstallation; a third spec wants the machine back, and its installation fails with NotUp.
testTransitions(150);
