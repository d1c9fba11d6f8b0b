import { waitFor } from '../../../local/testing';
import { sentenceOf } from '../proxy/proxied-request';
import type { FaultProxy } from '../proxy/fault-proxy';
import type { FaultBench } from '../fault-bench';
import type { OperatorProcess } from '../../../operator/testing';
import { quiet } from '../../e2e/operator/support/quiet';
import type { Load } from './load';

/** So often is every object reconciled without anything being written. */
const ROUNDS = 3;

/** Expects that the operator, made to look at every object of a load again and again, writes nothing. */
export async function expectCalm(bench: FaultBench, load: Load): Promise<void> {
  const { operator, proxy } = bench;
  await quiet(bench, operator);
  const before = proxy.writes().length;
  for (let round = 0; round < ROUNDS; round += 1) {
    const reconciles = (await operator.metrics()).sum('controller_runtime_reconcile_total');
    await load.forceReconciles();
    await quiet(bench, operator, reconciles + load.living.length);
  }
  expect(proxy.writes().slice(before).map(sentenceOf)).toEqual([]);
}

/** Expects that a new operator, which looks at everything, writes nothing. */
export async function expectCalmRestart(bench: FaultBench, { living }: Load): Promise<void> {
  expect(await bench.operator.stop()).toEqual({ code: 0, signal: null });
  const before = bench.proxy.writes().length;
  await startAuditing(bench);
  // They all share one key more.
  await quiet(bench, bench.operator, living.length + 1);
  expect(bench.proxy.writes().slice(before).map(sentenceOf)).toEqual([]);
}

/** Starts an operator that compares its caches with the server all the time; resolves when it works. */
export async function startAuditing(bench: FaultBench): Promise<void> {
  await bench.start(['--audit-seconds=1']);
  await bench.operator.working();
}

/**
 * Waits until the operator has compared all its caches with the server once more, and expects that it has never found an event missing.
 *
 * Each cache is compared by a list of its type in all namespaces, one type after the other: when each was listed twice, a whole round lies
 * between.
 */
export async function expectNothingMissed(proxy: FaultProxy, operator: OperatorProcess): Promise<void> {
  const watched = new Set(proxy.requests.filter(({ verb }) => verb === 'watch').map(({ resource }) => resource));
  const since = Date.now();
  const listed = (type: string): number =>
    proxy.requests.filter(({ verb, resource, at }) => verb === 'list' && resource === type && at > since).length;
  await waitFor(() => [...watched].every((type) => listed(type) >= 2), {
    describe: 'every cache to be audited',
    timeout: 120_000,
  });
  const told = operator.log.all.filter(({ msg }) => msg.startsWith('the watch missed events'));
  expect({ missed: (await operator.metrics()).sum('kindred_missed_events_total'), told }).toEqual({
    missed: 0,
    told: [],
  });
}
