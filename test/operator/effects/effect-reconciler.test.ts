import { PlanError, RunInterruptedError } from '../../../operator/effects/plan-runner';
import { NotLeaderError } from '../../../operator/leader/leader-election';
import { owned } from '../../../constructs/kube/resource-type';
import { NAMESPACE, ref } from '../reconcile/harness';
import { Thing, World } from './world';

let world: World;

beforeEach(async () => {
  world = new World();
  await world.harness.add('a', { size: 1 });
});

const failure = (reason = 'ErrMachine') => new PlanError(reason, 'The machine is on fire. Put it out.');

function remove(): void {
  world.harness.server.edit(Thing.type, ref('a'), (object) => ({
    ...object,
    metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', generation: 2 },
  }));
}

async function made(): Promise<void> {
  await world.reconcile();
  await world.end({ message: 'Built.', status: { built: 1 } });
  await world.reconcile();
}

/** Somebody has a Secret under the name of the state. */
async function takeName(): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'Secret', metadata: ref('a-state') };
  await world.harness.server.create(owned.Secret, body, { fieldManager: 'kubectl' });
}

describe('an effect', () => {
  test('runs once, and is not done again, after a restart either', async () => {
    await world.reconcile();
    expect(world.harness.conditions('a')).toEqual([
      'Ready=False Provisioning',
      'Reconciling=True Provisioning',
      'Made=False Provisioning',
    ]);
    expect(world.open).toHaveLength(1);
    await world.end({ message: 'Built.', status: { built: 1 } });
    await world.reconcile();
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready', 'Made=True Succeeded']);
    expect(world.harness.object('a').status).toMatchObject({ built: 1, attempts: 1 });
    expect((await world.reconcile()).writes).toEqual([]);
    world.restart();
    expect((await world.reconcile()).writes).toEqual([]);
    expect(world.open).toEqual([]);
  });

  test('says how far it is, and one object has one run', async () => {
    await world.reconcile();
    world.open[0]!.run.report({ message: 'Step 2 of 3.', status: { built: 7 }, event: true });
    await world.reconcile();
    expect(world.harness.message('a')).toBe('Step 2 of 3.');
    expect(world.harness.object('a').status).toMatchObject({ built: 7 });
    expect(world.harness.events.map(({ message }) => message)).toContain('Step 2 of 3.');
    world.harness.respec('a', { size: 2 });
    await world.reconcile();
    expect(world.open).toHaveLength(1);
    await world.end({ message: 'Built.' });
    await world.reconcile();
    expect(world.open.map(({ run }) => run.run.input)).toEqual([{ size: 2 }]);
  });

  test('is tried again after a delay that grows, and stalls when it has failed as often as it may', async () => {
    const delays: (number | undefined)[] = [];
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await world.reconcile();
      expect(world.open[0]!.run.attempt).toBe(attempt);
      await world.end(failure());
      const { next } = await world.reconcile();
      delays.push(next.requeueAfterMs);
      world.clock.pass(next.requeueAfterMs ?? 0);
    }
    expect(delays).toEqual([1000, 2000, undefined]);
    expect(world.harness.conditions('a')).toEqual([
      'Ready=False ErrMachine',
      'Made=False ErrMachine',
      'Stalled=True ErrMachine',
    ]);
    expect(world.harness.message('a')).toContain('The machine is on fire. Put it out. (make: 3 of 3 attempts failed.)');
    expect(world.harness.object('a').status).toMatchObject({ attempts: 3 });
    world.restart();
    world.clock.pass(86_400_000);
    await world.reconcile();
    expect(world.open).toEqual([]);
    world.harness.annotate('a', { 'kindred.dev/reconcile-at': 'now' });
    await world.reconcile();
    expect(world.open[0]!.run.attempt).toBe(1);
  });

  test('does not try again what would end the same', async () => {
    await world.reconcile();
    await world.end(new PlanError('ErrKey', 'The key has a passphrase.', { isTerminal: true }));
    await world.reconcile();
    expect(world.harness.conditions('a')).toContain('Stalled=True ErrKey');
    world.harness.respec('a', { size: 2 });
    await world.reconcile();
    expect(world.open).toHaveLength(1);
  });

  test('goes on after a kill, which counts as an attempt', async () => {
    await world.reconcile();
    await world.open[0]!.run.values.put({ token: 'a secret' });
    world.restart();
    await world.reconcile();
    expect(world.open[0]!.run.attempt).toBe(2);
    expect(world.open[0]!.run.values.all()).toEqual({ token: 'a secret' });
  });

  test('goes on after an orderly stop, which counts as none', async () => {
    await world.reconcile();
    world.stop.abort();
    expect(() => world.open[0]!.run.assertMayContinue()).toThrow(RunInterruptedError);
    await world.end(new RunInterruptedError('stopped'));
    world.restart();
    const fresh = new World();
    expect(fresh.open).toEqual([]);
    const state = world.harness.live(owned.Secret, 'a-state') as unknown as { data: Record<string, string> };
    const records = JSON.parse(Buffer.from(state.data['effects.json']!, 'base64').toString()) as object;
    expect(records).toMatchObject({ make: { state: 'interrupted', attempts: 0 } });
  });

  test('starts no step once another process leads', async () => {
    world.leads = false;
    await world.reconcile();
    expect(world.open).toEqual([]);
    world.leads = true;
    await world.reconcile();
    expect(world.open).toHaveLength(1);
    world.leads = false;
    expect(() => world.open[0]!.run.assertMayContinue()).toThrow(RunInterruptedError);
  });

  test('says nothing of an object whose Lease is lost in its midst, and counts no failure', async () => {
    await world.reconcile();
    const before = world.harness.events.length;
    await world.end(new NotLeaderError('another leads'));
    await world.reconcile();
    expect(world.harness.events.slice(before)).toEqual([]);
    expect(world.open.at(-1)?.run.attempt).toBe(1);
  });

  test('that was killed before the status was written has its fields still', async () => {
    await world.reconcile();
    await world.end({ message: 'Built.', status: { built: 3 } });
    world.restart();
    await world.reconcile();
    expect(world.harness.object('a').status).toMatchObject({ built: 3, attempts: 1 });
    expect(world.open).toEqual([]);
  });

  test('whose state another process wrote meanwhile takes that for what counts', async () => {
    await world.reconcile();
    const [mine] = world.open.splice(0);
    world.restart();
    await world.reconcile();
    expect(world.open[0]!.run.attempt).toBe(2);
    await expect(mine!.run.values.put({ token: 'late' })).rejects.toThrow();
    await world.end({ message: 'Built.' });
    world.restart();
    await world.reconcile();
    expect(world.harness.conditions('a')).toContain('Made=True Succeeded');
  });

  test('is told when it has taken too long', async () => {
    await world.reconcile();
    const { timeout } = world.open[0]!.run;
    world.clock.pass(59_999);
    expect(timeout.aborted).toBe(false);
    world.clock.pass(1);
    expect(timeout.aborted).toBe(true);
  });

  test('begins nothing whose beginning cannot be stored, until it can', async () => {
    await takeName();
    const { next } = await world.reconcile();
    expect(world.open).toEqual([]);
    expect(world.harness.conditions('a')).toContain('Stalled=True ErrResourceExists');
    expect(world.harness.message('a')).toContain('Secret default/a-state is not ours');
    expect(next).toMatchObject({ action: 'wait', requeueAfterMs: 30_000 });
    world.lose('a-state');
    await world.reconcile();
    expect(world.open).toHaveLength(1);
  });
});

describe('a Secret that decides', () => {
  test('is waited for, and its change runs the effect again', async () => {
    world.harness.respec('a', { secret: 's' });
    await world.reconcile();
    expect(world.open).toEqual([]);
    expect(world.harness.conditions('a')).toContain('Ready=False ErrNotFound');
    const secret = (value: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's', namespace: NAMESPACE },
      data: { k: Buffer.from(value).toString('base64') },
    });
    await world.harness.server.create(owned.Secret, secret('one'), { fieldManager: 'kubectl' });
    await made();
    expect(world.harness.conditions('a')).toContain('Made=True Succeeded');
    expect(JSON.stringify(world.harness.object('a'))).not.toContain('one');
    await world.harness.server.update(owned.Secret, secret('two'), { fieldManager: 'kubectl' });
    await world.reconcile();
    expect(world.open).toHaveLength(1);
  });
});

describe('an object that is deleted', () => {
  test('is taken away before its finalizer is dropped', async () => {
    await made();
    remove();
    await world.reconcile();
    expect(world.open[0]!.run.run).toMatchObject({ name: 'unmake', phase: 'remove', plan: 'thing.down' });
    expect(world.harness.object('a').metadata.finalizers).toEqual(['example.com/thing']);
    await world.end({ message: 'Gone.' });
    await world.reconcile();
    expect(world.harness.server.peek(Thing.type, ref('a'))?.metadata.finalizers ?? []).toEqual([]);
  });

  test('in the foreground is taken away by what stands in its Secret, which then goes with it', async () => {
    await made();
    world.harness.server.remove(Thing.type, ref('a'), 'Foreground');
    world.harness.server.collectGarbage();
    expect(world.harness.live(owned.Secret, 'a-state').metadata.deletionTimestamp).toBeDefined();
    world.restart();
    await world.reconcile();
    expect(world.open.map(({ run }) => run.run.name)).toEqual(['unmake']);
    await world.end({ message: 'Gone.' });
    await world.reconcile();
    world.harness.server.collectGarbage();
    expect(world.harness.server.peek(owned.Secret, ref('a-state'))).toBeUndefined();
    expect(world.harness.server.peek(Thing.type, ref('a'))).toBeUndefined();
  });

  test('stalls when its removal fails too often, and a person may let it go', async () => {
    await made();
    remove();
    for (let i = 0; i < 2; i += 1) {
      const { next } = await world.reconcile();
      world.clock.pass(next.requeueAfterMs ?? 0);
      await world.reconcile();
      await world.end(failure());
    }
    await world.reconcile();
    expect(world.harness.conditions('a')).toContain('Stalled=True ErrMachine');
    expect(world.harness.message('a')).toContain('kindred.dev/force-remove');
    world.clock.pass(86_400_000);
    await world.reconcile();
    expect(world.open).toEqual([]);
    world.harness.annotate('a', { 'kindred.dev/force-remove': 'true' });
    await world.reconcile();
    expect(world.harness.server.peek(Thing.type, ref('a'))?.metadata.finalizers ?? []).toEqual([]);
  });

  test('for which nothing was ever begun goes at once', async () => {
    world.harness.respec('a', { secret: 'missing' });
    await world.reconcile();
    remove();
    await world.reconcile();
    expect(world.harness.server.peek(Thing.type, ref('a'))?.metadata.finalizers ?? []).toEqual([]);
  });

  test('whose state is gone stays, and says so, until it is put back', async () => {
    await made();
    const { metadata, ...state } = world.harness.live(owned.Secret, 'a-state');
    world.lose('a-state');
    world.restart();
    remove();
    const { next } = await world.reconcile();
    expect(world.harness.conditions('a')).toContain('Stalled=True ErrStateMissing');
    expect(world.open).toEqual([]);
    expect(next.requeueAfterMs).toBe(30_000);
    const restored = { ...state, metadata: { ...ref('a-state'), annotations: { ...metadata.annotations } } };
    await world.harness.server.create(owned.Secret, restored, { fieldManager: 'kubectl' });
    await world.reconcile();
    expect(world.open.map(({ run }) => run.run.name)).toEqual(['unmake']);
  });

  test('whose name for the state was taken all along goes at once, and leaves that alone', async () => {
    await takeName();
    await world.reconcile();
    expect(world.harness.conditions('a')).toContain('Stalled=True ErrResourceExists');
    world.harness.server.remove(Thing.type, ref('a'));
    await world.reconcile();
    expect(world.harness.server.peek(Thing.type, ref('a'))).toBeUndefined();
    expect(world.harness.live(owned.Secret, 'a-state').metadata.deletionTimestamp).toBeUndefined();
  });

  test("whose state has become another's stays, and looks for it again", async () => {
    await made();
    world.lose('a-state');
    world.restart();
    await takeName();
    remove();
    const { next } = await world.reconcile();
    expect(world.harness.conditions('a')).toContain('Stalled=True ErrResourceExists');
    expect(next.requeueAfterMs).toBe(30_000);
  });

  test('ends its run first', async () => {
    await world.reconcile();
    remove();
    await world.reconcile();
    expect(world.open.map(({ run }) => run.run.name)).toEqual(['make']);
    await world.end(failure());
    await world.reconcile();
    expect(world.open.map(({ run }) => run.run.name)).toEqual(['unmake']);
  });
});
