import { InterruptedError, type Engine, type MemoryCluster } from '../../support/pulumi-engine';
import { expectSettled, kept, newCluster, newEngine, stack, stays, type Values } from './platform-changes';

/** A stack that goes from one configuration to another, from nothing if there is no first one. */
export type Change = readonly [name: string, before: Values | undefined, after: Values];

/** With an operator of two kinds and their samples. */
const two: Values = { kinds: ['HelloApp', 'DemoMicroService'], samples: true };

export const changes: readonly Change[] = [
  ['an installation', undefined, two],
  ['a change of the namespace', two, { ...two, namespace: 'ops' }],
];

/** A stack as it is before a change, and after its run was killed. */
interface Killed {
  readonly cluster: MemoryCluster;
  readonly engine: Engine;
  readonly others: ReadonlyMap<string, string>;
}

/** Kills the run of a change at its n-th operation. @returns undefined if it has fewer */
async function kill([, before, after]: Change, at: number, when: 'before' | 'after'): Promise<Killed | undefined> {
  const cluster = await newCluster();
  const engine = newEngine(cluster);
  if (before !== undefined) await engine.up(stack(cluster, before));
  const others = kept(cluster);
  const killed = await engine.up(stack(cluster, after), { parallel: 1, interrupt: { at, when } }).then(
    () => false,
    (error: unknown) => {
      expect(error).toBeInstanceOf(InterruptedError);
      return true;
    },
  );
  return killed ? { cluster, engine, others } : undefined;
}

/**
 * Kills the run of a change at every so many operations, before and after them, and expects that the next `up` finishes the change, and
 * that instead `destroy` removes all that the run has created.
 *
 * @returns how many runs had left something that the state did not have
 */
export async function expectFinished(change: Change, every: number): Promise<number> {
  const [, , after] = change;
  let leftovers = 0;
  for (const when of ['before', 'after'] as const) {
    for (let at = 1; ; at += every) {
      const up = await kill(change, at, when);
      if (up === undefined) break;
      const finished = await up.engine.up(stack(up.cluster, after));
      if (finished.log.some(({ message }) => message.includes('from a run that was interrupted'))) leftovers += 1;
      await expectSettled(up.engine, up.cluster, after, up.others);
      expect(finished.log.filter(({ severity, urn }) => severity === 'warning' && urn === '')).toEqual([]);

      const destroyed = (await kill(change, at, when))!;
      await destroyed.engine.destroy();
      const left = [...destroyed.cluster.objects.keys()].filter(
        (key) => !stays.test(key) && !key.includes('of-others'),
      );
      // The owner itself, if it was cut.
      expect([at, left.filter((key) => !/ ClusterRole \/kindred-owner-/.test(key))]).toEqual([at, []]);
      expect(left.length).toBeLessThanOrEqual(1);
    }
  }
  return leftovers;
}
