import { childTypes } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import { managedFieldsOf, type FieldSet } from '../../../operator/informer/field-ownership';
import type { LogLine, Metrics, OperatorProcess } from '../../../testing';
import { waitFor } from '../../../testing/wait-for';
import { describeRequest } from '../../../testing/fault-proxy/exchange';
import type { FaultProxy } from '../../../testing/fault-proxy/fault-proxy';
import { childrenOfAll, findCondition, isReadyNow, titleOf, waitUntilIdle } from '../../support/assertions';
import { operatorKinds, type TestEnv, type FaultTestEnv } from '../../support/test-env';
import { byMode } from '../mode';
import type { Load } from './load';

/** After a long outage, delays have grown as long as it was; and a machine that does ten things at once is slow. */
const endStateTimeoutMs = byMode({ short: 100_000, long: 240_000 });

/** Waits until everything stands that the specs describe, and nothing else. */
export async function waitForEndState(load: Load): Promise<void> {
  const { namespace } = load;
  await waitFor(
    async () => {
      await expectEndState(load);
      return true;
    },
    { describe: `the end state of ${namespace}`, timeout: endStateTimeoutMs, interval: 250 },
  );
}

/**
 * Expects that the objects of the six kinds are those that live, all Ready as they stand now; that their children, and those that they
 * share, stand as rendered; and that nothing is left that belonged to others.
 */
async function expectEndState({ env, namespace, liveObjects: living }: Load): Promise<void> {
  const owners = await Promise.all(operatorKinds.map(({ type }) => itemsOf(env, type, namespace)));
  const types = new Map(operatorKinds.flatMap(childTypes).map((type) => [typeKey(type), type]));
  const children = (await Promise.all([...types.values()].map((type) => itemsOf(env, type, namespace)))).flat();
  const expected = operatorKinds.flatMap((kind, i) => {
    const ofKind = [...(owners[i] ?? [])].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    return childrenOfAll(kind, ofKind);
  });
  const isOurs = ({ metadata }: KubeObject): boolean =>
    metadata.ownerReferences?.some(({ kind }) => operatorKinds.some((known) => known.kind === kind)) === true;
  // All at once: what is still there of an owner tells why it is.
  expect({
    owners: owners.flat().map(standing).sort(),
    notReady: owners.flat().flatMap(whyNotReady),
    children: children.filter(isOurs).map(standing).sort(),
    leftBehind: children
      .filter(isOurs)
      .map(findLeftoverField)
      .filter((path) => path !== undefined),
  }).toEqual({
    owners: living.map(({ kind, name }) => `${kind.kind} ${name}`).sort(),
    notReady: [],
    children: expected.map(({ object }) => titleOf(object)).sort(),
    leftBehind: [],
  });
  for (const { object } of expected)
    expect(children.find((child) => titleOf(child) === titleOf(object))).toMatchObject(object);
}

async function itemsOf(env: TestEnv, type: ResourceType, namespace: string): Promise<readonly KubeObject[]> {
  return (await env.client.list(type, { namespace })).items;
}

/** An object by its title, and where it is being deleted, what holds it. */
function standing(object: KubeObject): string {
  const { deletionTimestamp, finalizers = [] } = object.metadata;
  if (deletionTimestamp === undefined) return titleOf(object);
  return `${titleOf(object)}, going since ${deletionTimestamp}, held by ${finalizers.join(', ')}`;
}

function whyNotReady(owner: KubeObject): readonly string[] {
  if (isReadyNow(owner)) return [];
  return [`${titleOf(owner)}: ${findCondition(owner, 'Ready')?.message ?? 'no condition'}`];
}

/** One that finds a difference waits for the next bookmark of the watch, 75 s at most; then come the types after it. */
const CHECK_TIMEOUT_MS = 120_000;
/** The longest of the waits that follow a trouble, with as much again for all else: what a test that ends with them may take in its short form. */
export const STEADY_STATE_TIMEOUT_MS = 300_000;

/** So often is every object reconciled without anything being written. */
const ROUNDS = 3;

/** An operator and the proxy that it alone asks through. */
interface ProxiedOperator {
  readonly operator: OperatorProcess;
  readonly proxy: FaultProxy;
}

/** Objects, and how all of them are reconciled again; a `Load` is one. */
export interface Reconcilable {
  readonly env: TestEnv;
  readonly liveObjects: readonly unknown[];
  forceReconciles(): Promise<void>;
}

/** Expects that the operator, made to look at every object of a load again and again, writes nothing. */
export async function expectNoWritesOnResync({ operator, proxy }: ProxiedOperator, load: Reconcilable): Promise<void> {
  const { env } = load;
  await waitUntilIdle(env, operator);
  const before = proxy.writes().length;
  for (let round = 0; round < ROUNDS; round += 1) {
    const reconciles = (await operator.metrics()).sum('controller_runtime_reconcile_total');
    await load.forceReconciles();
    await waitUntilIdle(env, operator, reconciles + load.liveObjects.length);
  }
  expect(proxy.writes().slice(before).map(describeRequest)).toEqual([]);
}

/** Expects that a new operator, which looks at everything, writes nothing. */
export async function expectNoWritesOnRestart(env: FaultTestEnv, { liveObjects: living }: Reconcilable): Promise<void> {
  expect(await env.operator.stop()).toEqual({ code: 0, signal: null });
  const before = env.proxy.writes().length;
  await startWithConsistencyChecks(env);
  // They all share one key more.
  await waitUntilIdle(env, env.operator, living.length + 1);
  expect(env.proxy.writes().slice(before).map(describeRequest)).toEqual([]);
}

/** Has an operator compare its caches with the server all the time, so that what a watch has missed is counted while the test lasts. */
export const consistencyCheckArgs: readonly string[] = ['--audit-seconds=1'];

/** Starts an operator that does so; resolves when it works. */
export async function startWithConsistencyChecks(env: FaultTestEnv): Promise<void> {
  await env.start(consistencyCheckArgs);
  await env.operator.waitUntilReconciling();
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
export async function expectNoMissedEvents(proxy: FaultProxy, operator: OperatorProcess): Promise<void> {
  const watched = [...new Set(proxy.requests.filter(({ verb }) => verb === 'watch').map(({ resource }) => resource))];
  // Without a cache every round would be over at once.
  expect(watched).not.toEqual([]);
  const since = Date.now();
  const before = await operator.metrics();
  const types = before.labelValues(AUDITS, 'type');
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
    timeout: CHECK_TIMEOUT_MS,
  });
  const told = (begin: string): readonly LogLine[] => operator.log.all.filter(({ msg }) => msg.startsWith(begin));
  const failures = told('the cache could not be audited').filter(({ time }) => Date.parse(time) > since);
  const [missed, failed] = [after.sum(MISSED), grown(after, before, { outcome: 'failed' })];
  const sound = { missed: 0, told: [], failed: 0, failures: [] };
  expect({ missed, told: told(missedEventsMessage), failed, failures }).toEqual(sound);
}

const AUDITS = 'kindred_audits_total';
const MISSED = 'kindred_missed_events_total';

function grown(after: Metrics, before: Metrics, labels: Readonly<Record<string, string>>): number {
  return after.sum(AUDITS, labels) - before.sum(AUDITS, labels);
}

/** How the operator begins to say that a watch has not told it of something. */
export const missedEventsMessage = 'the watch missed events';

/** What no trouble of a network or a server excuses, by how the messages begin. */
const bugs = [missedEventsMessage, 'a reconcile ended unexpectedly'];

/** What the operators of a test have logged as errors: those that are gone count like the one at work. */
export class ErrorLog {
  private readonly operators: OperatorProcess[] = [];

  /** From now on what this one has logged counts, and what it still will. */
  follow(operator: OperatorProcess): void {
    this.operators.push(operator);
  }

  /** All of them as JSON, those of the first operator first. */
  all(): readonly string[] {
    return this.operators.flatMap(({ log }) => log.errors()).map((line) => JSON.stringify(line));
  }

  /**
   * Those that are a bug, whatever trouble there was, are none.
   *
   * @throws Error with what was logged
   */
  expectNoBug(): void {
    const errors = this.operators.flatMap(({ log }) => log.errors());
    const found = errors.filter(({ msg }) => bugs.some((begin) => msg.startsWith(begin)));
    if (found.length === 0) return;
    throw new Error(`operators have logged what is a bug:\n${found.map((line) => JSON.stringify(line)).join('\n')}`);
  }
}

/**
 * A field that the operator's POST created and its last apply does not name. It would stay for ever: an apply takes away only what former applies
 * have named, and no comparison of what is rendered with what stands sees it.
 *
 * @param child - as the server lists it, managedFields and all
 * @returns the field's path in its `FieldsV1` form; undefined when there is none
 */
export function findLeftoverField(child: KubeObject): string | undefined {
  const setOf = (wanted: 'Apply' | 'Update'): FieldSet | undefined =>
    managedFieldsOf(child).find(
      ({ manager, operation, subresource = '' }) => manager === 'kindred' && operation === wanted && subresource === '',
    )?.fieldsV1;
  const [created, applied] = [setOf('Update'), setOf('Apply')];
  return created === undefined || applied === undefined ? undefined : firstFieldBeyond(created, applied);
}

function firstFieldBeyond(created: FieldSet, applied: FieldSet): string | undefined {
  for (const [step, below] of Object.entries(created)) {
    const named = applied[step];
    if (named === undefined) return step;
    const path = firstFieldBeyond(below, named);
    if (path !== undefined) return `${step}.${path}`;
  }
  return undefined;
}
