// The gate keeps the same property with fewer runs, and what lost a cluster once: transitions.property.test.ts.
import { servers, expectedState } from '../../support/cluster-specs';
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
      expect({ at, when, errors, ...provisioner.state }).toEqual({ at, when, errors: [], ...expectedState(back) });
    }
  }
  expect(at).toBeGreaterThan(10);
});

// One way in some thousands fails, and is not mended yet: seed -1236703661, path 503:0:0:0:2:3:3:3:3:8. The installation of a server is cut after
// it has joined etcd and before its node is registered. A spec without it uninstalls it, since the other servers know no node of it; its
// member stays in etcd, which may lose its quorum by that.
testTransitions(150);
