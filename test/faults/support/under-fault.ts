import { waitFor } from '../../../testing/wait-for';
import { noFault, when, type Fault, type SeenRequest } from '../../../testing/fault-proxy/fault-proxy';
import { exceptLeases } from '../../../testing/fault-proxy/faults';
import type { TestEnv, FaultTestEnv } from '../../support/test-env';
import { byMode } from '../mode';
import { Load } from './load';
import {
  waitForEndState,
  expectNoWritesOnResync,
  expectNoWritesOnRestart,
  expectNoMissedEvents,
  startWithConsistencyChecks,
} from './steady-state';
import { expectNoStorm, rssMiB, measureTraffic, type Traffic, type Workload } from './traffic';

/** What a fault must have hit; each by its name, given the requests that were faulted until now. */
type Hits = Readonly<Record<string, (faulted: readonly SeenRequest[]) => boolean>>;

/** A fault by its name, and what it must hit while the operator is at work: one that hits nothing tests nothing. */
type NamedFault = readonly [what: string, fault: Fault, hits: Hits];

export const writes = (faulted: readonly SeenRequest[]): boolean => faulted.some(isWrite);
export const watches = (faulted: readonly SeenRequest[]): boolean => faulted.some(({ verb }) => verb === 'watch');
export const gets = (faulted: readonly SeenRequest[]): boolean => faulted.some(({ verb }) => verb === 'get');
/** Further pages of the lists that fill a cache; those of an audit come without trouble too. */
export const pages = (faulted: readonly SeenRequest[]): boolean =>
  faulted.some(({ verb, metadataOnly, url }) => verb === 'list' && !metadataOnly && url.searchParams.has('continue'));

/** Writes, from the first to the last of which it is so long, in milliseconds: how often they are tried again shows only in time. */
export const writesFor = (ms: number): Hits[string] => lastsFor(isWrite, ms);
/** The same of watches. */
export const watchesFor = (ms: number): Hits[string] => lastsFor(({ verb }) => verb === 'watch', ms);

function lastsFor(isOne: (request: SeenRequest) => boolean, ms: number): Hits[string] {
  return (faulted) => {
    const hit = faulted.filter(isOne);
    return (hit.at(-1)?.at ?? 0) - (hit[0]?.at ?? 0) >= ms;
  };
}

function isWrite({ writes: isOne, isBackground }: SeenRequest): boolean {
  return isOne && !isBackground;
}

/** Tests that work goes on, or is caught up with, under each of the faults, on one control plane. */
export function testUnderFaults(env: FaultTestEnv, faults: readonly NamedFault[]): void {
  beforeAll(async () => {
    await startWithConsistencyChecks(env);
  }, 60_000);

  // A test that failed may have left none.
  beforeEach(async () => {
    if (!env.operator.running) await startWithConsistencyChecks(env);
  }, 60_000);

  test.each(faults)('%s', async (_what, fault, hits) => {
    await runUnderFault(env, async (work) => {
      try {
        await withFault(env, when(exceptLeases, fault), hits, async () => {
          // Watches are opened anew, into the fault.
          env.proxy.dropConnections();
          await work();
        });
      } finally {
        env.clearFaults();
      }
    });
  });
}

/** Has work done under a fault, until that has hit what it is to hit. Then it ends, but nothing is cut. */
export async function withFault(
  { proxy }: FaultTestEnv,
  fault: Fault,
  hits: Hits,
  work: () => Promise<void>,
): Promise<void> {
  const began = Date.now();
  proxy.fault = fault;
  try {
    await work();
    for (const [what, isHit] of Object.entries(hits))
      await waitFor(() => isHit(proxy.faultedRequests(began)), {
        describe: `the fault to hit ${what}`,
        timeout: 60_000,
      });
  } finally {
    proxy.fault = noFault;
  }
}

/** Has work done in the middle of some trouble; when it resolves, the trouble is over. */
type Disturbance = (work: () => Promise<void>) => Promise<void>;

interface Outcome {
  readonly traffic: Traffic;
  readonly workload: Workload;
}

/** What an operator may grow by in one trouble, in MiB: a heap that is not collected yet is no leak; a soak tells leaks apart. */
const GROWTH_MIB = 60;

const size = byMode({
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
export async function runUnderFault(env: FaultTestEnv, trouble: Disturbance): Promise<Outcome> {
  return withSeed(async () => {
    const load = new Load(env, await env.namespace('faults'), size);
    await load.before();
    await waitForEndState(load);
    const before = rssMiB(env.operator.pid);
    const began = Date.now();
    await trouble(() => load.during());
    await waitForEndState(load);
    const { workload } = load;
    const traffic = measureTraffic(env.proxy.requests, began, Date.now());
    expectNoStorm(traffic, workload);
    await expectNoMissedEvents(env.proxy, env.operator);
    await expectNoWritesOnResync(env, load);
    expect(rssMiB(env.operator.pid) - before).toBeLessThan(GROWTH_MIB);
    await expectNoWritesOnRestart(env, load);
    return { traffic, workload };
  });
}

/** What chance depends on in this run; `KINDRED_SEED` repeats another one. */
export const seed: string = process.env['KINDRED_SEED'] ?? String(Date.now());

// At once: a test that runs out of time throws nothing that could tell it.
process.stderr.write(
  `KINDRED_SEED=${seed} repeats what chance does in ${expect.getState().testPath ?? 'these tests'}\n`,
);

/** Tells the seed with whatever goes wrong. */
async function withSeed<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new Error(`with KINDRED_SEED=${seed}: ${said}`, { cause: error });
  }
}

/** Runs the operators of an environment without a Lease: a frozen operator then goes on when it thaws. With a Lease it ends; see `leadership/`. */
export function disableLeaderElection(env: TestEnv): void {
  const args = env.platform.args.filter((arg) => arg !== '--leader-elect' && !arg.startsWith('--lease-'));
  env.platform = { ...env.platform, args };
}
