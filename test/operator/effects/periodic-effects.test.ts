import { PlanError } from '../../../operator/effects/plan-runner';
import { defineKind } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { ref } from '../reconcile/harness';
import { Thing, World } from './world';

describe('an effect that repeats', () => {
  const DAY_MS = 86_400_000;
  const [make] = Thing.effects;
  const Probe = defineKind({
    ...Thing,
    ...{ kind: 'Probe', plural: 'probes', singular: 'probe', finalizer: undefined, conditionTypes: [] },
    effects: [{ ...make!, condition: undefined, everySeconds: 60 }],
  });
  let world: World;
  const failure = new PlanError('ErrMachine', 'The machine is on fire. Put it out.');
  const hopeless = new PlanError('ErrKey', 'The key has a passphrase.', { isTerminal: true });
  const put = (value: string, how: 'create' | 'update'): Promise<unknown> => {
    const data = { k: Buffer.from(value).toString('base64') };
    const body = { apiVersion: 'v1', kind: 'Secret', metadata: ref('s'), data };
    return world.harness.server[how](owned.Secret, body, { fieldManager: 'kubectl' });
  };

  beforeEach(async () => {
    world = new World(4, Probe);
    await world.harness.add('a', { size: 1 });
  });

  async function failHopelessly(): Promise<Awaited<ReturnType<World['reconcile']>>> {
    await world.reconcile();
    expect(world.open).toHaveLength(1);
    await world.end(hopeless);
    const result = await world.reconcile();
    expect(world.harness.conditions('a')).toEqual(['Ready=False ErrKey', 'Stalled=True ErrKey']);
    return result;
  }

  test('is tried again after its period when it failed as often as it may', async () => {
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const { next } = await world.reconcile();
      world.clock.pass(next.requeueAfterMs ?? 0);
      await world.reconcile();
      await world.end(failure);
    }
    const { next } = await world.reconcile();
    expect(next.requeueAfterMs).toBe(60_000);
    world.clock.pass(60_000);
    await world.reconcile();
    expect(world.open).toHaveLength(1);
  });

  test('stalls where only a change helps, and is quiet whatever time passes', async () => {
    const { next } = await failHopelessly();
    expect(next.requeueAfterMs).toBeUndefined();
    expect(world.harness.message('a')).toContain('(make: another attempt would end the same.) It is tried again when');
    const before = world.harness.events.length;
    world.clock.pass(DAY_MS);
    expect((await world.reconcile()).writes).toEqual([]);
    expect(world.open).toEqual([]);
    expect(world.harness.events).toHaveLength(before);
  });

  test('goes on with its period after the spec changes, and after the annotation', async () => {
    await failHopelessly();
    world.harness.respec('a', { size: 2 });
    await world.reconcile();
    await world.end({ message: 'Built.' });
    await world.reconcile();
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
    world.clock.pass(60_000);
    await failHopelessly();
    world.harness.annotate('a', { 'kindred.dev/reconcile-at': 'now' });
    await world.reconcile();
    await world.end({ message: 'Built.' });
    await world.reconcile();
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
  });

  test('looks at a Secret that it reads, and goes on when that changes', async () => {
    await put('one', 'create');
    world.harness.respec('a', { secret: 's' });
    const { next } = await failHopelessly();
    expect(next.requeueAfterMs).toBe(300_000);
    world.clock.pass(300_000);
    await world.reconcile();
    expect(world.open).toEqual([]);
    await put('two', 'update');
    await world.reconcile();
    expect(world.open).toHaveLength(1);
  });
});
