import fc from 'fast-check';
import { apiServers, clusterProblems, clusterTasks, stillMembers } from '../../../constructs/provision';
import type { ClusterInput } from '../../../constructs/provision';
import { MachineError, carryOut } from '../../../operator/src/tasks';
import type { CarriedOut, TaskRecord } from '../../../operator/src/tasks';
import { ClusterModel } from '../../support/cluster-model';
import { ROLES, addressOf, servers, valuesIn, wantedState } from '../../support/cluster-specs';
import type { Role, Spec } from '../../support/cluster-specs';
import { inputOf, node } from '../../constructs/provision/inputs';

/** From any cluster to any other, cut anywhere on the way: what stays is never removed, and etcd never loses its quorum by our doing. */

const inputFrom = (spec: Spec): ClusterInput =>
  inputOf({
    distribution: 'k3s',
    nodes: spec.map(([number, role]) => node(addressOf(number), { roles: [...ROLES[role]] })),
    options: { registrationAddress: 'api.example.com' },
  });

/** When a run is cut: before or after what a script does, or in its middle, at the n-th script. */
interface Cut {
  readonly at: number;
  readonly when: 'before' | 'middle' | 'after';
}

class Provisioner {
  readonly model = new ClusterModel();
  records: readonly TaskRecord[] = [];
  applied: ClusterInput | undefined;

  /** As the provisioner does it. @returns undefined when the spec is refused */
  async up(
    spec: Spec,
    { cut, lost = [] }: { cut?: Cut; lost?: readonly number[] } = {},
  ): Promise<CarriedOut | undefined> {
    const input = inputFrom(spec);
    const members = this.records.find(({ task }) => task.id === 'members')?.task;
    const previous = this.applied && { ...this.applied, nodes: stillMembers(this.applied.nodes, members) };
    if (clusterProblems(input, previous).length > 0 || input.distribution === 'rke') return undefined;
    this.model.wanted = new Set(spec.map(([number]) => addressOf(number)));
    const done = await this.#carryOut(clusterTasks(input), { servers: apiServers(input).join(' ') }, cut, lost);
    if (done.complete) this.applied = input;
    return done;
  }

  async remove(): Promise<CarriedOut> {
    this.model.wanted = new Set();
    return this.#carryOut([], { whole: 'yes' });
  }

  async #carryOut(
    plan: ReturnType<typeof clusterTasks>,
    facts: Readonly<Record<string, string>>,
    cut?: Cut,
    lost: readonly number[] = [],
  ): Promise<CarriedOut> {
    const applies = new Set(plan.map(({ apply }) => apply));
    let count = 0;
    const stop = new AbortController();
    return carryOut({
      plan,
      previous: this.records,
      signal: stop.signal,
      concurrency: 1,
      transport: {
        run: ({ machine, script, stdin }) => {
          const on = machine?.address ?? '';
          if (this.model.dead.has(on)) throw new MachineError('Unreachable', `${on} cannot be reached`);
          const id = /^# (\S+) of the cluster/.exec(script)?.[1] ?? '';
          const isCut = cut?.at === count++;
          if (isCut) stop.abort();
          if (isCut && cut.when === 'before') throw new MachineError('Aborted', 'cut before');
          const action = applies.has(script) ? 'apply' : 'remove';
          const answer = this.model.run({
            ...{ id, action, on, script, values: valuesIn(stdin) },
            cut: isCut && cut.when === 'middle',
          });
          if (isCut) throw new MachineError('ConnectionLost', 'cut after');
          return Promise.resolve({ exitCode: 0, stdout: JSON.stringify(answer), stderr: '' });
        },
      },
      removalValues: Object.entries(facts).map(([name, value]) => ({ name, value })),
      isLost: ({ address }) => lost.some((number) => addressOf(number) === address),
      lookup: { secret: () => Promise.resolve('secret'), file: () => Promise.reject(new Error('no such file')) },
      save: (records) => {
        this.records = JSON.parse(JSON.stringify(records)) as TaskRecord[];
        return Promise.resolve();
      },
    });
  }

  get state() {
    return this.model.state;
  }
}

describe('transitions that lost a cluster once', () => {
  test.each([
    ['fewer servers', servers(1, 2, 3), servers(1)],
    ['another order', servers(1, 2, 3), servers(2, 1, 3)],
    ['only the last stays', servers(1, 2, 3), servers(3)],
    ['the first two go', servers(1, 2, 3, 4, 5), servers(3, 4, 5)],
    ['all but one are replaced', servers(1, 2, 3), servers(3, 4, 5)],
    ['more, in front of none', servers(3), servers(3, 1, 2)],
    [
      'the only server with an API is replaced',
      [
        [1, 'etcd'],
        [2, 'api'],
      ] as Spec,
      [
        [1, 'etcd'],
        [3, 'api'],
      ] as Spec,
    ],
  ])('%s, and back', async (_, one, other) => {
    const provisioner = new Provisioner();
    for (const spec of [one, other, one]) {
      const done = await provisioner.up(spec);
      // What cannot be is refused before anything is touched.
      if (done === undefined) continue;
      expect(done.errors).toEqual([]);
      expect(provisioner.state).toEqual(wantedState(spec));
      expect((await provisioner.up(spec))?.ran).toEqual([]);
    }
    expect((await provisioner.remove()).errors).toEqual([]);
    expect(provisioner.state).toMatchObject({ clusters: 0, installed: [], violations: [] });
    expect(provisioner.records).toEqual([]);
  });

  test('a cluster is not replaced by another one', async () => {
    const provisioner = new Provisioner();
    await provisioner.up(servers(1));
    expect(await provisioner.up(servers(2))).toBeUndefined();
    expect(provisioner.state).toEqual(wantedState(servers(1)));
  });

  test.each([1, 2, 3])('server %d of three is gone for good', async (gone) => {
    const provisioner = new Provisioner();
    await provisioner.up(servers(1, 2, 3));
    provisioner.model.dead.add(addressOf(gone));
    const kept = servers(...[1, 2, 3].filter((number) => number !== gone), 4);
    expect((await provisioner.up(kept))?.errors.map(({ reason }) => reason)).toContain('Unreachable');
    expect(provisioner.state).toEqual(wantedState(kept, [gone]));
    expect(await provisioner.up(kept, { lost: [gone] })).toMatchObject({ complete: true, errors: [] });
    expect(provisioner.records.filter(({ task }) => task.id.startsWith(`${addressOf(gone)}/`))).toEqual([]);
  });
});

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

const spec = fc
  .tuple(
    fc.shuffledSubarray([1, 2, 3, 4, 5], { minLength: 1 }),
    fc.array(fc.constantFrom<Role>('all', 'all', 'all', 'etcd', 'api', 'agent'), { minLength: 5, maxLength: 5 }),
  )
  .map(([numbers, roles]): Spec => numbers.map((number) => [number, roles[number - 1] ?? 'all'] as const))
  .filter((given) => ['api', 'etcd'].every((wanted) => given.some(([, role]) => role === 'all' || role === wanted)))
  .filter((given) => clusterProblems(inputFrom(given)).length === 0);

const cut = fc.record({
  at: fc.integer({ min: 0, max: 40 }),
  when: fc.constantFrom<Cut['when']>('before', 'middle', 'after'),
});

/** Why a machine may refuse for good: the spec asks for what cannot be. */
const REFUSALS = ['PreflightFailed', 'ClusterExists', 'RoleChanged'];

test('from any spec to any other, cut anywhere, and on to a third', async () => {
  await fc.assert(
    fc.asyncProperty(spec, spec, spec, cut, async (first, second, third, at) => {
      const provisioner = new Provisioner();
      expect((await provisioner.up(first))?.errors).toEqual([]);
      const begun = await provisioner.up(second, { cut: at });
      expect(provisioner.state.violations).toEqual([]);
      const accepted = begun === undefined ? first : second;
      // A third one may be taken up in the middle; what is refused changes nothing, and the one before can be finished.
      let ends = await provisioner.up(third);
      let end = third;
      expect(provisioner.state.violations).toEqual([]);
      if (ends?.complete !== true) {
        for (const { reason } of ends?.errors ?? []) expect(REFUSALS).toContain(reason);
        end = accepted;
        ends = await provisioner.up(accepted);
      }
      expect({ errors: ends?.errors, ...provisioner.state }).toEqual({ errors: [], ...wantedState(end) });
      expect((await provisioner.up(end))?.ran).toEqual([]);
      expect((await provisioner.remove()).errors).toEqual([]);
      expect(provisioner.state).toMatchObject({ clusters: 0, installed: [] });
    }),
    { numRuns: 150 },
  );
});
