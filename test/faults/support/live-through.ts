import type { FaultBench } from '../fault-bench';
import { form } from '../form';
import { expectCalm, expectCalmRestart, expectNothingMissed } from './calm';
import { endStateReached } from './end-state';
import { Load } from './load';
import { rssMiB } from './rss';
import { withSeed } from './seed';
import { expectNoStorm, trafficOf } from './traffic';
import type { Traffic, Workload } from './traffic';

/** Has work done in the middle of some trouble; when it resolves, the trouble is over. */
export type Trouble = (work: () => Promise<void>) => Promise<void>;

interface Outcome {
  readonly traffic: Traffic;
  readonly workload: Workload;
}

/** What an operator may grow by in one trouble, in MiB: a heap that is not collected yet is no leak; a soak tells leaks apart. */
const GROWTH_MIB = 60;

const size = form({
  short: { steady: 1, rounds: 1, paceMs: 150 },
  long: { steady: 4, rounds: 4, paceMs: 1_500 },
});

/**
 * Has the operator work on a load of all six kinds while there is trouble, and expects, once that is over: the end state that the specs
 * describe, no event missed, no storm of requests, no growth, and then no further write: not when every
 * object is reconciled again, nor by an operator that is started anew.
 *
 * An operator must be at work already; another one is when it resolves, so that one trouble does not slow down the next.
 *
 * @returns what the operator asked from the beginning of the trouble to the end state, and for what
 */
export async function liveThrough(bench: FaultBench, trouble: Trouble): Promise<Outcome> {
  return withSeed(async () => {
    const load = new Load(bench, await bench.namespace('faults'), size);
    await load.before();
    await endStateReached(load);
    const before = rssMiB(bench.operator.pid);
    const began = Date.now();
    await trouble(() => load.during());
    await endStateReached(load);
    const { workload } = load;
    const traffic = trafficOf(bench.proxy.requests, began, Date.now());
    expectNoStorm(traffic, workload);
    await expectNothingMissed(bench.proxy, bench.operator);
    await expectCalm(bench, load);
    expect(rssMiB(bench.operator.pid) - before).toBeLessThan(GROWTH_MIB);
    await expectCalmRestart(bench, load);
    return { traffic, workload };
  });
}
