import { owned } from '../../../constructs/kube/resource-type';
import { PlanError, RunInterruptedError } from '../../../operator/effects/plan-runner';
import { ref } from '../reconcile/harness';
import { apiError } from '../../../testing/api-server/requests';
import { Thing, World } from './world';

let world: World;

/** A Thing whose run is under way. */
beforeEach(async () => {
  world = new World();
  await world.harness.add('a', { size: 1 });
  await world.reconcile();
});

const failure = (): PlanError => new PlanError('ErrMachine', 'The machine is on fire. Put it out.');

describe('an object that a person lets go', () => {
  beforeEach(async () => {
    await world.end({ message: 'Built.' });
    await world.reconcile();
    world.harness.annotate('a', { 'kindred.dev/force-remove': 'true' });
  });

  test('leaves no Secret that is held', async () => {
    world.harness.server.remove(Thing.type, ref('a'));
    await world.reconcile();
    world.harness.server.collectGarbage();
    expect(world.harness.server.peek(Thing.type, ref('a'))).toBeUndefined();
    expect(world.harness.server.peek(owned.Secret, ref('a-state'))).toBeUndefined();
  });

  test('goes, though the server does not let go of its Secret', async () => {
    const { server } = world.harness;
    server.before = ({ verb, type }) => {
      if (verb === 'PUT' && type === owned.Secret) throw apiError(403, 'Forbidden', 'secrets "a-state" is forbidden');
    };
    server.remove(Thing.type, ref('a'));
    await world.reconcile();
    expect(server.peek(Thing.type, ref('a'))).toBeUndefined();
  });

  test('keeps its Secret held while another process leads', async () => {
    world.leads = false;
    world.harness.server.remove(Thing.type, ref('a'));
    await world.reconcile();
    expect(world.harness.live(owned.Secret, 'a-state').metadata.finalizers).toEqual(['kindred.dev/state']);
  });
});

describe('an object that is gone, since somebody took its finalizer off,', () => {
  function vanish(): void {
    const gone = world.harness.object('a');
    world.harness.server.edit(Thing.type, ref('a'), (object) => ({
      ...object,
      metadata: { ...object.metadata, finalizers: [], deletionTimestamp: '2026-01-01T00:00:00Z' },
    }));
    world.desk.forget(gone);
  }

  function expectNoState(): void {
    world.harness.server.collectGarbage();
    expect(world.harness.server.peek(owned.Secret, ref('a-state'))).toBeUndefined();
  }

  test('ends its run where that would store something, and leaves no state that is held', async () => {
    vanish();
    await expect(world.open[0]!.run.values.put({ token: 'late' })).rejects.toThrow(RunInterruptedError);
    await world.end(failure());
    expectNoState();
  });

  test('leaves none either that was on its way to the server just then', async () => {
    const { server } = world.harness;
    server.before = async ({ verb, type }) => {
      if (verb !== 'PUT' || type !== owned.Secret) return;
      server.before = () => undefined;
      vanish();
      await world.settle();
    };
    await world.open[0]!.run.values.put({ token: 'late' });
    await world.end(failure());
    expectNoState();
  });
});
