import { owned } from '../../../constructs/kube/resource-type';
import { TransportError } from '../../../operator/client/errors';
import { NotLeaderError } from '../../../operator/leader/leader-election';
import { ref } from '../reconcile/harness';
import { apiError } from '../../../testing/api-server/requests';
import { Thing, World } from './world';

/** The words in which an API server of old refused to drop a finalizer, again and again. */
const notAllowed = apiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');

let world: World;
/** What the server answers to whoever drops a finalizer. */
let refusal: Error | undefined;

beforeEach(async () => {
  world = new World();
  const { harness } = world;
  await harness.add('a', { size: 1 });
  await world.reconcile();
  await world.end({ message: 'Built.' });
  await world.reconcile();
  harness.server.remove(Thing.type, ref('a'));
  await world.reconcile();
  await world.end({ message: 'Gone.' });
  harness.server.before = ({ verb, type }) => {
    if (verb === 'PATCH' && type === Thing.type && refusal !== undefined) throw refusal;
  };
});

const isGone = (): boolean => world.harness.server.peek(Thing.type, ref('a')) === undefined;

/** So many reconciles, each when the one before has asked for it. */
async function delays(times: number): Promise<readonly (number | undefined)[]> {
  const found: (number | undefined)[] = [];
  for (let i = 0; i < times; i += 1) {
    const { next } = await world.reconcile();
    expect(next).toMatchObject({ action: 'wait', failed: { reason: 'ErrCleanup' } });
    found.push(next.requeueAfterMs);
    world.clock.pass(next.requeueAfterMs ?? 0);
  }
  return found;
}

describe('a finalizer that the server does not let go', () => {
  test.each([
    ['the method is not allowed', notAllowed],
    ['it is forbidden', apiError(403, 'Forbidden', 'things.example.com "a" is forbidden')],
    ['it is invalid', apiError(422, 'Invalid', 'Thing.example.com "a" is invalid: guarded')],
  ])('is tried again with growing delays, then stalls: %s', async (_, error) => {
    refusal = error;
    expect(await delays(4)).toEqual([1000, 2000, 4000, 8000]);
    expect(world.harness.conditions('a').slice(0, 2)).toEqual([
      'Ready=False ErrCleanup',
      'Reconciling=True ErrCleanup',
    ]);
    expect(world.harness.message('a')).toBe(`The clean-up failed and is tried again: ${error.message}`);
    expect(await delays(1)).toEqual([undefined]);
    expect(world.harness.conditions('a').slice(0, 2)).toEqual(['Ready=False ErrCleanup', 'Stalled=True ErrCleanup']);
    expect(world.harness.message('a')).toContain(`The clean-up failed too often: ${error.message}`);
    expect(world.open).toEqual([]);
  });

  test('is given no less time by events that wake the object meanwhile', async () => {
    refusal = notAllowed;
    await delays(1);
    await world.reconcile();
    world.clock.pass(1500);
    expect((await world.reconcile()).next.requeueAfterMs).toBe(500);
    for (let i = 0; i < 10; i += 1) await world.reconcile();
    expect(world.harness.conditions('a')).toContain('Reconciling=True ErrCleanup');
  });

  test('is tried again when a person asks for it, and goes once it may', async () => {
    refusal = notAllowed;
    await delays(5);
    world.harness.annotate('a', { 'kindred.dev/reconcile-at': 'now' });
    expect(await delays(1)).toEqual([1000]);
    refusal = undefined;
    await world.reconcile();
    expect(isGone()).toBe(true);
  });

  test('has all its attempts again after a clean-up that went on', async () => {
    refusal = notAllowed;
    await delays(4);
    const { uid } = world.harness.object('a').metadata;
    const owner = { apiVersion: 'example.com/v1', kind: 'Thing', name: 'a', uid: uid!, controller: true };
    await world.harness.server.create(
      owned.ConfigMap,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...ref('late'), ownerReferences: [owner] } },
      { fieldManager: 'kubectl' },
    );
    expect((await world.reconcile()).writes).toEqual(['DELETE ConfigMap late (Foreground)']);
    world.harness.server.collectGarbage();
    expect(await delays(4)).toEqual([1000, 2000, 4000, 8000]);
  });
});

describe('a server that fails while a clean-up is under way', () => {
  test.each([
    [500, 'InternalError', 'etcdserver: leader changed'],
    [503, 'ServiceUnavailable', 'apiserver is shutting down'],
    [429, 'TooManyRequests', 'too many requests'],
  ])('is borne however often it answers %d', async (code, reason, message) => {
    refusal = apiError(code, reason, message);
    const [first, ...others] = await delays(30);
    expect([first, others.at(-1)]).toEqual([1000, 60_000]);
    expect(world.harness.conditions('a').slice(0, 2)).toEqual([
      'Ready=False ErrCleanup',
      'Reconciling=True ErrCleanup',
    ]);
    refusal = undefined;
    await world.reconcile();
    expect(isGone()).toBe(true);
  });

  test('is borne when it takes no status either', async () => {
    const error = apiError(500, 'InternalError', 'etcdserver: leader changed');
    world.harness.server.before = ({ verb }) => {
      if (verb !== 'GET') throw error;
    };
    expect(await delays(3)).toEqual([1000, 2000, 4000]);
    world.harness.server.before = () => undefined;
    await world.reconcile();
    expect(isGone()).toBe(true);
  });

  test.each([
    ['gives no answer', new TransportError('connect ECONNREFUSED', 'PATCH things')],
    ['is no longer ours to write to', new NotLeaderError('another leads')],
  ])('is none of the object when it %s: nothing is said or counted', async (_, error) => {
    refusal = error;
    const { events } = world.harness;
    const before = events.length;
    for (let i = 0; i < 30; i += 1) {
      await expect(world.reconcile()).rejects.toBe(error);
      world.clock.pass(60_000);
    }
    expect(events.slice(before)).toEqual([]);
    refusal = notAllowed;
    expect(await delays(1)).toEqual([1000]);
  });
});
