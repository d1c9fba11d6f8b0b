import { waitFor } from '../../../local/testing';
import { sentenceOf } from '../proxy/proxied-request';
import type { FaultProxy } from '../proxy/fault-proxy';
import type { FaultBench } from '../fault-bench';
import type { LogLine, OperatorProcess } from '../../../operator/testing';
import type { Bench } from '../../e2e/operator/support/bench';
import { quiet } from '../../e2e/operator/support/quiet';

/** One that finds a difference waits for the next bookmark of the watch, 75 s at most; then come the types after it. */
const AUDIT_PATIENCE_MS = 120_000;
/** The longest of the waits that follow a trouble, with as much again for all else: what a test that ends with them may take in its short form. */
export const CALM_WITHIN_MS = 300_000;

/** So often is every object reconciled without anything being written. */
const ROUNDS = 3;

/** An operator and the proxy that it alone asks through. */
export interface Subject {
  readonly operator: OperatorProcess;
  readonly proxy: FaultProxy;
}

/** Objects, and how all of them are reconciled again; a `Load` is one. */
export interface Reconcilable {
  readonly bench: Bench;
  readonly living: readonly unknown[];
  forceReconciles(): Promise<void>;
}

/** Expects that the operator, made to look at every object of a load again and again, writes nothing. */
export async function expectCalm({ operator, proxy }: Subject, load: Reconcilable): Promise<void> {
  const { bench } = load;
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
export async function expectCalmRestart(bench: FaultBench, { living }: Reconcilable): Promise<void> {
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
 * Waits until the operator has compared all its caches with the server once more, and expects that it has never found an event missing. An operator
 * that does not audit, or whose audits fail, does not pass.
 *
 * Each cache is compared by a list of its type in all namespaces, one type after the other: when each was listed twice, a whole round lies
 * between.
 */
export async function expectNothingMissed(proxy: FaultProxy, operator: OperatorProcess): Promise<void> {
  const watched = [...new Set(proxy.requests.filter(({ verb }) => verb === 'watch').map(({ resource }) => resource))];
  // Without a cache every round would be over at once.
  expect(watched).not.toEqual([]);
  const since = Date.now();
  const listed = (type: string): number =>
    proxy.requests.filter(({ verb, resource, at }) => verb === 'list' && resource === type && at > since).length;
  await waitFor(() => watched.every((type) => listed(type) >= 2), {
    describe: 'every cache to be audited',
    timeout: AUDIT_PATIENCE_MS,
  });
  const told = (begin: string): readonly LogLine[] => operator.log.all.filter(({ msg }) => msg.startsWith(begin));
  const failed = told('the cache could not be audited').filter(({ time }) => Date.parse(time) > since);
  const missed = (await operator.metrics()).sum('kindred_missed_events_total');
  expect({ missed, told: told('the watch missed events'), failed }).toEqual({ missed: 0, told: [], failed: [] });
}
