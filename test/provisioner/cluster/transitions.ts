import fc from 'fast-check';
import { clusterProblems, clusterTasks, remainingMembers, removalFacts, type ClusterInput } from '../../../provision';
import { MachineError } from '../../../provisioner/tasks/transport';
import { executePlan, type ExecutePlanResult } from '../../../provisioner/tasks/execute-plan';
import type { TaskRecord } from '../../../provisioner/tasks/task-record';
import { ClusterModel } from '../../support/cluster-model';
import { ROLES, addressOf, valuesIn, expectedState, type Role, type Spec } from '../../support/cluster-specs';
import { inputOf, node } from '../../provision/inputs';

/** From any cluster to any other, cut anywhere on the way: what stays is never removed, and etcd never loses its quorum by our doing. */

const inputFrom = (spec: Spec): ClusterInput =>
  inputOf({
    distribution: 'k3s',
    nodes: spec.map(([number, role]) => node(addressOf(number), { roles: [...ROLES[role]] })),
    options: { registrationAddress: 'api.example.com' },
  });

/** When a run is cut: before or after what a script does, or in its middle, at the n-th script. */
export interface Cut {
  readonly at: number;
  readonly when: 'before' | 'middle' | 'after';
}

export class Provisioner {
  readonly model = new ClusterModel();
  #saved = '[]';
  applied: ClusterInput | undefined;

  /** As the provisioner does it. @returns undefined when the spec is refused */
  async up(
    spec: Spec,
    { cut, lost = [] }: { cut?: Cut; lost?: readonly number[] } = {},
  ): Promise<ExecutePlanResult | undefined> {
    const input = inputFrom(spec);
    const members = this.records.find(({ task }) => task.id === 'members')?.task;
    const previous = this.applied && { ...this.applied, nodes: remainingMembers(this.applied.nodes, members) };
    if (clusterProblems(input, previous).length > 0 || input.distribution === 'rke') return undefined;
    this.model.wanted = new Set(spec.map(([number]) => addressOf(number)));
    const done = await this.#carryOut(clusterTasks(input), { ...removalFacts(input) }, cut, lost);
    if (done.complete) this.applied = input;
    return done;
  }

  async remove(): Promise<ExecutePlanResult> {
    this.model.wanted = new Set();
    return this.#carryOut([], { whole: 'yes' });
  }

  async #carryOut(
    plan: ReturnType<typeof clusterTasks>,
    facts: Readonly<Record<string, string>>,
    cut?: Cut,
    lost: readonly number[] = [],
  ): Promise<ExecutePlanResult> {
    const applies = new Set(plan.map(({ apply }) => apply));
    let count = 0;
    const stop = new AbortController();
    return executePlan({
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
        this.#saved = JSON.stringify(records);
        return Promise.resolve();
      },
    });
  }

  /** What was saved last, which is read far less often. */
  get records(): readonly TaskRecord[] {
    return JSON.parse(this.#saved) as TaskRecord[];
  }

  get state(): ClusterModel['state'] {
    return this.model.state;
  }
}

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
const REFUSALS: readonly string[] = ['PreflightFailed', 'ClusterExists', 'RoleChanged'];

/**
 * Goes from the first spec to the second, cut on the way, and on to a third; what must not be, never is, and all of it can be removed then.
 * A third one that is refused changes nothing, and the one before is finished.
 */
export async function expectTransition(first: Spec, second: Spec, third: Spec, at: Cut): Promise<void> {
  const provisioner = new Provisioner();
  expect((await provisioner.up(first))?.errors).toEqual([]);
  const begun = await provisioner.up(second, { cut: at });
  expect(provisioner.state.violations).toEqual([]);
  const accepted = begun === undefined ? first : second;
  let ends = await provisioner.up(third);
  let end = third;
  expect(provisioner.state.violations).toEqual([]);
  if (ends?.complete !== true) {
    const unexplained = (ends?.errors ?? []).filter(({ reason }) => !REFUSALS.includes(reason));
    expect(unexplained).toEqual([]);
    end = accepted;
    ends = await provisioner.up(accepted);
  }
  expect({ errors: ends?.errors, ...provisioner.state }).toEqual({ errors: [], ...expectedState(end) });
  expect((await provisioner.up(end))?.ran).toEqual([]);
  expect((await provisioner.remove()).errors).toEqual([]);
  expect(provisioner.state).toMatchObject({ clusters: 0, installed: [] });
}

/** Tests the way from any spec to any other, as often as is said. */
export function testTransitions(numRuns: number): void {
  test('from any spec to any other, cut anywhere, and on to a third', async () => {
    await fc.assert(fc.asyncProperty(spec, spec, spec, cut, expectTransition), { numRuns });
  });
}
