import { addressOf, servers } from '../../support/cluster-specs';
import type { Spec } from '../../support/cluster-specs';
import { DESTROYED, Stack, expectDestroyed } from './model-stack';

// The other changes are in transitions.slow.test.ts.

/** From one cluster to another with Pulumi, where what is deleted carries what was recorded, and goes after all updates. */
jest.setTimeout(300_000);

test.each<[string, Spec, Spec]>([['fewer servers', servers(1, 2, 3), servers(1)]])(DESTROYED, expectDestroyed);

test('the last server of a cluster is not uninstalled because the program has another one', async () => {
  const stack = new Stack();
  await stack.up(servers(1));
  expect(await stack.up(servers(2))).toEqual(['LastServer']);
  expect(stack.model.machine(addressOf(1)).installed).toBe(true);
  expect(stack.model.violations).toEqual([]);
});
