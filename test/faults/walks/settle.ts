import { setTimeout as delay } from 'node:timers/promises';
import { PAUSED_ANNOTATION, RECONCILE_AT_ANNOTATION } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { operatorKinds } from '../../support/test-env';
import { settle, waitUntilIdle } from '../../support/assertions';
import { noFault, type Fault } from '../../../testing/fault-proxy/fault-proxy';
import { describeRequest } from '../../../testing/fault-proxy/exchange';
import { expectNoMissedEvents } from '../support/steady-state';
import type { ClusterView } from './cluster-view';
import { endState } from './end-state';
import type { WalkEnv } from './walk-env';

/** How long the cluster may take once the faults have stopped: backoffs, which are at most as long as the faults were, and a busy machine. */
const settleTimeoutMs = 90_000;
/** For how long nothing may change before an end state counts as one. */
const stillMs = 1_500;

/** Ends everything that a walk may have left behind: faults, a frozen operator, pauses. */
export async function clearFaults(world: WalkEnv): Promise<void> {
  const { env, ledger } = world;
  env.operator.resume();
  env.clearFaults();
  for (const object of ledger.all()) {
    if (object.metadata.annotations?.[PAUSED_ANNOTATION] !== undefined)
      await annotate(world, object, PAUSED_ANNOTATION, null);
  }
  world.log('healed');
}

/**
 * Waits for the end state, and until nothing moves any more.
 *
 * @returns what stands then
 * @throws Error with all that is wrong at last
 */
export async function waitUntilSettled(world: WalkEnv): Promise<ClusterView> {
  const { env, namespace, ledger } = world;
  const view = await settle(env, {
    describe: 'the cluster to be as the last specs say',
    operator: async () => {
      await world.restartIfExited();
      await env.operator.waitUntilReconciling();
      return env.operator;
    },
    check: async () => {
      const state = await endState(env.client, namespace, ledger);
      if (state.problems.length > 0) throw new Error(['', ...state.problems].join('\n- '));
      return state.view;
    },
    versions: (state) => state.versions(),
    stillMs,
    timeoutMs: settleTimeoutMs,
  });
  world.log(`settled: ${view.summary()}`);
  return view;
}

/**
 * Makes the operator look at every object once more, a new operator too, and expects it to write nothing of which the server keeps anything.
 *
 * None of the operators of the walk may have missed an event, or failed in a way that nobody foresaw.
 *
 * @param stood what stands before
 * @throws Error with the writes, or with what was logged
 */
export async function expectNoWrites(world: WalkEnv, stood: ClusterView): Promise<void> {
  const { env, ledger, operators } = world;
  const writes: string[] = [];
  env.proxy.fault = recording(world.namespace, writes);
  const objects = ledger.all();
  const before = (await env.operator.metrics()).sum('controller_runtime_reconcile_total');
  for (const object of objects) await annotate(world, object, RECONCILE_AT_ANNOTATION, new Date().toISOString());
  await waitUntilIdle(env, env.operator, before + objects.length);
  await expectNoMissedEvents(env.proxy, env.operator);
  world.log(`looked at everything once more, with ${String(writes.length)} writes`);
  const next = await operators.replace();
  await next.waitUntilReconciling();
  await waitUntilIdle(env, next, objects.length);
  await expectNoMissedEvents(env.proxy, next);
  await delay(stillMs);
  env.proxy.fault = noFault;
  world.log('a new operator has looked at everything');
  operators.expectNoBug();
  if (writes.length === 0) return;
  const owners = stood
    .allOwners()
    .map(({ kind, metadata: { name }, status }) => `${kind}/${name} ${JSON.stringify(status)}`);
  const lines = ['nothing had changed, and yet it was written:', ...writes, 'There stood:', ...owners];
  throw new Error(lines.join('\n- '));
}

/**
 * Looks once, without patience.
 *
 * @throws Error with all that is wrong
 */
export async function expectEndState({ env, namespace, ledger }: WalkEnv): Promise<void> {
  const { problems } = await endState(env.client, namespace, ledger);
  if (problems.length > 0) throw new Error(['the cluster did not stay as it was:', ...problems].join('\n- '));
}

/** Passes everything and notes the writes that the server took; an attempt that it refuses changes nothing. */
function recording(namespace: string, writes: string[]): Fault {
  return async (exchange) => {
    const { request } = exchange;
    if (!request.writes || request.isBackground || request.namespace !== namespace) return exchange.pass();
    const answer = await exchange.fetchResponse();
    if (answer.status < 300) writes.push(`${describeRequest(request)} ${request.body.toString('utf8')}`);
    exchange.send(answer);
  };
}

async function annotate(
  { env, ledger }: WalkEnv,
  object: KubeObject,
  name: string,
  value: string | null,
): Promise<void> {
  const type = operatorKinds.find(({ kind }) => kind === object.kind)?.type;
  if (type === undefined) throw new TypeError(`${object.kind} is no kind of the walks`);
  const { metadata } = object;
  const ref = { name: metadata.name, ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }) };
  ledger.accepted(await env.patch(type, ref, { metadata: { annotations: { [name]: value } } }));
}
