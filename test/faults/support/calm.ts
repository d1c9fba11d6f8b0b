import { waitFor } from '../../../local/testing';
import { sentenceOf } from '../proxy/proxied-request';
import type { FaultProxy } from '../proxy/fault-proxy';
import type { FaultBench } from '../fault-bench';
import type { LogLine, Metrics, OperatorProcess } from '../../../testing';
import type { Bench } from '../../e2e/operator/support/bench';
import { quiet } from '../../e2e/operator/support/quiet';
import { missedEvents } from './errors-logged';

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

/** Has an operator compare its caches with the server all the time, so that what a watch has missed is counted while the test lasts. */
export const auditing: readonly string[] = ['--audit-seconds=1'];

/** Starts an operator that does so; resolves when it works. */
export async function startAuditing(bench: FaultBench): Promise<void> {
  await bench.start(auditing);
  await bench.operator.working();
}

/**
 * Waits until the operator has compared all its caches with the server once more, and expects that it has never found an event missing. An operator
 * that does not audit, or whose audits fail or prove nothing, does not pass.
 *
 * Each cache is compared by a list of its type in all namespaces, one type after the other: when each was listed twice, a whole round lies
 * between. Of two audits of a type that agree, one has begun since.
 *
 * @param proxy - which saw the operator open its watches
 */
export async function expectNothingMissed(proxy: FaultProxy, operator: OperatorProcess): Promise<void> {
  const watched = [...new Set(proxy.requests.filter(({ verb }) => verb === 'watch').map(({ resource }) => resource))];
  // Without a cache every round would be over at once.
  expect(watched).not.toEqual([]);
  const since = Date.now();
  const before = await operator.metrics();
  const types = before.labelled(AUDITS, 'type');
  expect(types).toHaveLength(watched.length);
  const listed = (type: string): number =>
    proxy.requests.filter(({ verb, resource, at }) => verb === 'list' && resource === type && at > since).length;
  const agreed = (now: Metrics, type: string): number => grown(now, before, { type, outcome: 'agrees' });
  const isBad = (now: Metrics): boolean => now.sum(MISSED) > 0 || grown(now, before, { outcome: 'failed' }) > 0;
  const audited = async (): Promise<Metrics> => {
    const now = await operator.metrics();
    const open = [...watched.filter((type) => listed(type) < 2), ...types.filter((type) => agreed(now, type) < 2)];
    // What is bad stays bad, and is told below.
    if (open.length > 0 && !isBad(now)) throw new Error(`no result yet for ${open.join(', ')}`);
    return now;
  };
  const after = await waitFor(audited, {
    describe: 'every cache to be audited, with a result',
    timeout: AUDIT_PATIENCE_MS,
  });
  const told = (begin: string): readonly LogLine[] => operator.log.all.filter(({ msg }) => msg.startsWith(begin));
  const failures = told('the cache could not be audited').filter(({ time }) => Date.parse(time) > since);
  const [missed, failed] = [after.sum(MISSED), grown(after, before, { outcome: 'failed' })];
  const sound = { missed: 0, told: [], failed: 0, failures: [] };
  expect({ missed, told: told(missedEvents), failed, failures }).toEqual(sound);
}

const AUDITS = 'kindred_audits_total';
const MISSED = 'kindred_missed_events_total';

function grown(after: Metrics, before: Metrics, labels: Readonly<Record<string, string>>): number {
  return after.sum(AUDITS, labels) - before.sum(AUDITS, labels);
}
