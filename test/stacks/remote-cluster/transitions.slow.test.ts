import fc from 'fast-check';
import { clusterProblems } from '../../../provision';
import { ROLES, addressOf, servers, expectedState, type Role, type Spec } from '../../support/cluster-specs';
import { inputOf, node } from '../../provision/inputs';
import { DESTROYED, Stack, expectDestroyed } from './model-stack';

// The gate keeps fewer servers, and a last server that stays: transitions.test.ts.

/** From one cluster to another with Pulumi, where what is deleted carries what was recorded, and goes after all updates. */
jest.setTimeout(900_000);

let stack: Stack;
beforeEach(() => {
  stack = new Stack();
});

test.each<[string, Spec, Spec]>([
  ['another order', servers(1, 2, 3), servers(2, 1, 3)],
  ['only the last stays', servers(1, 2, 3), servers(3)],
  ['the first two go', servers(1, 2, 3, 4, 5), servers(3, 4, 5)],
  ['all but one are replaced', servers(1, 2, 3), servers(3, 4, 5)],
])(DESTROYED, expectDestroyed);

test.each<[string, Spec, Spec]>([
  ['one server becomes three, and the first stays', servers(1), servers(1, 2, 3)],
  ['three become one, and are three again', servers(1, 2, 3), servers(1)],
])('%s, there and back', async (_, one, other) => {
  for (const spec of [one, other, one]) {
    expect(await stack.up(spec)).toEqual([]);
    expect(stack.model.state).toEqual(expectedState(spec));
  }
});

test.each([1, 2, 3])('server %d of three is gone for good', async (gone) => {
  await stack.up(servers(1, 2, 3));
  stack.model.dead.add(addressOf(gone));
  const kept = [1, 2, 3].filter((number) => number !== gone);
  // With another in its place, as etcd's members are to be odd in number.
  expect(await stack.up(servers(...kept, gone), { lost: [gone] })).toEqual([]);
  expect(await stack.up(servers(...kept, 4))).toEqual([]);
  expect(stack.model.state).toEqual(expectedState(servers(...kept, 4), [gone]));
});

test('from one spec to another, interrupted anywhere, and finished; then destroyed', async () => {
  const numbers = fc.shuffledSubarray([1, 2, 3, 4, 5], { minLength: 1 });
  const roles = fc.array(fc.constantFrom<Role>('all', 'all', 'all', 'etcd', 'api', 'agent'), {
    minLength: 5,
    maxLength: 5,
  });
  const pair = fc.tuple(numbers, numbers, roles).map((drawn): readonly [Spec, Spec] => {
    const [one, other, all] = drawn;
    const specOf = (given: readonly number[]): Spec => given.map((number) => [number, all[number - 1] ?? 'all']);
    return [specOf(one), specOf(other)];
  });
  const cut = fc.record({
    at: fc.integer({ min: 1, max: 60 }),
    when: fc.constantFrom('before' as const, 'after' as const),
  });
  await fc.assert(
    fc.asyncProperty(pair.filter(isAccepted), cut, async ([one, other], interrupt) => {
      const given = new Stack();
      expect(await given.up(one)).toEqual([]);
      await given.up(other, { interrupt });
      expect(given.model.violations).toEqual([]);
      expect(await given.up(other)).toEqual([]);
      expect(given.model.state).toEqual(expectedState(other));
      expect(await given.destroy()).toEqual([]);
      expect(given.model.state).toMatchObject({ clusters: 0, installed: [], violations: [] });
    }),
    { numRuns: 12 },
  );
});

/** Whether both specs are clusters, and the one can become the other: put in front of a cluster that stands, a machine would begin another. */
function isAccepted([one, other]: readonly [Spec, Spec]): boolean {
  const has = (spec: Spec, wanted: Role): boolean => spec.some(([, role]) => role === 'all' || role === wanted);
  if (![one, other].every((spec) => has(spec, 'api') && has(spec, 'etcd'))) return false;
  const inputs = [one, other].map((spec) =>
    inputOf({
      distribution: 'k3s',
      nodes: spec.map(([number, role]) => node(addressOf(number), { roles: [...ROLES[role]] })),
      options: { registrationAddress: 'k8s.example.com' },
    }),
  );
  const [before, after] = inputs;
  if (before === undefined || after === undefined || clusterProblems(before).length > 0) return false;
  const first = other.find(([, role]) => role === 'all')?.[0] ?? other.find(([, role]) => role === 'etcd')?.[0];
  return clusterProblems(after, before).length === 0 && one.some(([number]) => number === first);
}
