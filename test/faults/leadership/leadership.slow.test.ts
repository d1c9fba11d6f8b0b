import { DemoMicroService, Foo, HelloApp } from '../../../constructs/kinds';
import { RECONCILE_AT_ANNOTATION } from '../../../constructs/kube/envelope';
import { owned } from '../../../constructs/kube/resource-type';
import { useTestEnv } from '../../support/test-env';
import { waitForChildren, isReadyNow } from '../../support/assertions';
import { byMode } from '../mode';
import { when } from '../../../testing/fault-proxy/fault-proxy';
import { resetBefore, stall } from '../../../testing/fault-proxy/faults';
import { describeRequest } from '../../../testing/fault-proxy/exchange';
import { STEADY_STATE_TIMEOUT_MS, waitForEndState } from '../support/steady-state';
import { Load } from '../support/load';
import { HeldRequests, RENEW_DEADLINE_MS, Replica, Failover, WriteTimes } from './replica';

jest.setTimeout(byMode({ short: STEADY_STATE_TIMEOUT_MS, long: 900_000 }));

const size = byMode({ short: { steady: 1, rounds: 1, paceMs: 150 }, long: { steady: 4, rounds: 3, paceMs: 1_000 } });
/** So many writes into the work a leader is in the middle of it. */
const MIDDLE = byMode({ short: 10, long: 60 });
/** What was asked for just before the moment at which a proxy, or this process, looks at its clock, in milliseconds. */
const CLOCKS_MS = 250;

const env = useTestEnv({ operator: false });
const replicas: Replica[] = [];
let leader: Replica;
let other: Replica;

async function join(): Promise<Replica> {
  const replica = await Replica.start(env);
  replicas.push(replica);
  return replica;
}

beforeAll(async () => {
  leader = await join();
  await leader.operator.waitUntilReconciling();
  other = await join();
}, 120_000);
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
});

/** The other one leads; a new one stands by. */
async function succeeded(): Promise<void> {
  leader = other;
  other = await join();
}

test('the leader is killed in the middle of work: the other one finishes it', async () => {
  const load = new Load(env, await env.namespace('killed'), size);
  await load.before();
  await waitForEndState(load);
  const succession = new Failover(leader, other);
  const before = leader.writesSince(0).length;
  const working = load.during();
  await env.eventually('the leader to be in the middle of it', () =>
    Promise.resolve(leader.writesSince(0).length >= before + MIDDLE ? true : undefined),
  );
  await leader.operator.kill();
  const killedAt = Date.now();
  await working;
  await other.operator.waitUntilReconciling();
  expect(other.writesSince(0).filter(({ at }) => at < killedAt)).toEqual([]);
  await waitForEndState(load);
  await succession.expectCleanFailover(load);
  await succeeded();
});

test('a leader that was paused past its Lease writes nothing more, and what it had in flight does no harm', async () => {
  const namespace = await env.namespace('paused');
  const at = (name: string) => ({ namespace, name });
  await env.createOfKind(HelloApp, at('replaced'), { image: 'nginx:1' });
  await env.createOfKind(HelloApp, at('changed'), { image: 'nginx:1' });
  for (const name of ['replaced', 'changed']) await env.waitUntil(HelloApp.type, at(name), 'Ready', isReadyNow);
  // The first change of a child moves its fields to apply; later ones are an apply alone, which is what is to be held.
  for (const name of ['replaced', 'changed']) {
    await env.patchSpec(HelloApp, at(name), { image: 'nginx:1.1' });
    await env.waitUntil(HelloApp.type, at(name), 'Ready', isReadyNow);
  }

  const succession = new Failover(leader, other);
  const held = new HeldRequests();
  leader.proxy.fault = when(({ writes, isBackground }) => writes && !isBackground, held.hold);
  await env.patchSpec(HelloApp, at('replaced'), { image: 'nginx:2' });
  await env.patchSpec(HelloApp, at('changed'), { image: 'nginx:2' });
  await env.createOfKind(HelloApp, at('created'), { image: 'nginx:1' });
  await env.createOfKind(DemoMicroService, at('finalized'), { image: 'podinfo:1' });
  await env.createOfKind(Foo, at('foo'), { deploymentName: 'of-foo' });
  await env.eventually('a write for each', () => Promise.resolve(held.all.length === 5 ? true : undefined));
  leader.operator.pause();
  const pausedAt = Date.now();
  const deadline = leader.lastRenewal(pausedAt) + RENEW_DEADLINE_MS;

  await other.operator.waitUntilReconciling();
  expect(await other.loggedAt('became leader')).toBeGreaterThan(deadline);
  // The other one brings all of it about; then things change that the held writes know nothing of.
  for (const name of ['replaced', 'changed', 'created'])
    await env.waitUntil(HelloApp.type, at(name), 'Ready', isReadyNow);
  await env.waitUntil(DemoMicroService.type, at('finalized'), 'Ready', isReadyNow);
  await env.deleteAndWait(DemoMicroService.type, at('finalized'));
  const { uid } = (await env.get(owned.Deployment, at('replaced'))).metadata;
  await env.client.delete(owned.Deployment, at('replaced'));
  const renewed = await env.waitUntil(
    owned.Deployment,
    at('replaced'),
    'made anew',
    ({ metadata }) => metadata.uid !== uid,
  );
  for (const name of ['replaced', 'changed', 'created']) await env.patchSpec(HelloApp, at(name), { image: 'nginx:3' });
  const settled = async (): Promise<void> => {
    for (const name of ['replaced', 'changed', 'created']) {
      const live = await env.waitUntil(HelloApp.type, at(name), 'Ready', isReadyNow);
      await waitForChildren(env, HelloApp, live);
    }
    await waitForChildren(env, Foo, await env.waitUntil(Foo.type, at('foo'), 'Ready', isReadyNow));
  };
  await settled();

  const before = await env.get(owned.Deployment, at('changed'));
  const statuses = Object.fromEntries(await held.release());
  // Each is refused by a precondition: a UID, a version, or that there is nothing of the name yet.
  expect(statuses).toEqual({
    [`patch deployments.apps ${namespace}/replaced`]: [409],
    [`patch deployments.apps ${namespace}/changed`]: [409],
    [`create deployments.apps ${namespace}/created`]: [409],
    [`create deployments.apps ${namespace}/of-foo`]: [409],
    [`patch demomicroservices.devops.my.domain ${namespace}/finalized`]: [404],
  });
  await settled();
  expect((await env.get(owned.Deployment, at('replaced'))).metadata.uid).toBe(renewed.metadata.uid);
  expect(await env.client.get(DemoMicroService.type, at('finalized'))).toBeUndefined();
  // Its pods have not been rolled back to what the spec said before, not even for a moment.
  const { generation } = (await env.get(owned.Deployment, at('changed'))).metadata;
  expect(generation).toBe(before.metadata.generation);

  const resumedAt = Date.now();
  leader.operator.resume();
  expect(await leader.operator.exited).toEqual({ code: 1, signal: null });
  expect(leader.writesSince(resumedAt).map(describeRequest)).toEqual([]);
  expect(leader.writesSince(deadline + CLOCKS_MS).map(describeRequest)).toEqual([]);
  await settled();
  const living = [
    ...['replaced', 'changed', 'created'].map((name) => [HelloApp, name] as const),
    [Foo, 'foo'] as const,
  ];
  let forced = 0;
  await succession.expectCleanFailover({
    env,
    liveObjects: living,
    // Of the one that users change most: two images, a child deleted, and what that child becomes.
    workload: { objects: living.length, changes: 4 },
    forceReconciles: async () => {
      const annotations = { [RECONCILE_AT_ANNOTATION]: String((forced += 1)) };
      for (const [kind, name] of living) await env.patch(kind.type, at(name), { metadata: { annotations } });
    },
  });
  await succeeded();
});

const cuts = byMode({
  short: [['gets no answer', stall]] as const,
  long: [
    ['gets no answer', stall],
    ['is reset at every request', resetBefore],
  ] as const,
});
test.each(cuts)('a leader that %s has ended its work before the other one begins', async (_what, fault) => {
  const load = new Load(env, await env.namespace('cut'), size);
  await load.before();
  await waitForEndState(load);
  const succession = new Failover(leader, other);
  const working = load.during();
  const writes = new WriteTimes();
  const cutAt = Date.now();
  leader.proxy.fault = writes.under(fault);
  // Its watches tell it what there is to write as long as they stand.
  await env.eventually('a write to be under way', () => Promise.resolve(writes.all.length > 0 ? true : undefined));
  leader.proxy.dropConnections();
  const deadline = leader.lastRenewal(cutAt) + RENEW_DEADLINE_MS;
  await working;

  const lostAt = await leader.loggedAt('lost leadership');
  const ledAt = await other.loggedAt('became leader');
  expect(lostAt).toBeLessThan(ledAt);
  // Those that got no answer had waited until then, and no longer.
  if (fault === stall) expect(writes.openAt(lostAt - CLOCKS_MS)).not.toEqual([]);
  expect(writes.openAt(ledAt)).toEqual([]);
  expect(leader.writesSince(deadline + CLOCKS_MS).map(describeRequest)).toEqual([]);
  expect(await leader.operator.exited).toEqual({ code: 1, signal: null });
  await waitForEndState(load);
  await succession.expectCleanFailover(load);
  await succeeded();
});
