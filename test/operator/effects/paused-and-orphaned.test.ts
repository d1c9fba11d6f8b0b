import { owned } from '../../../constructs/kube/resource-type';
import { ref } from '../reconcile/harness';
import { apiError } from '../../../testing/api-server/requests';
import { Thing, World } from './world';

const PAUSED = { 'kindred.dev/paused': 'true' };

let world: World;

/** A Thing that stands. */
beforeEach(async () => {
  world = new World();
  await world.harness.add('a', { size: 1 });
  await world.reconcile();
  await world.end({ message: 'Built.' });
  await world.reconcile();
});

const exists = (): boolean => world.harness.server.peek(Thing.type, ref('a')) !== undefined;
const state = () => world.harness.live(owned.Secret, 'a-state');
const plans = (): readonly string[] => world.open.map(({ run }) => run.run.plan);
const remove = (propagation?: 'Orphan'): void => world.harness.server.remove(Thing.type, ref('a'), propagation);

/** The object is gone, nothing was taken away, and the garbage collector leaves the state alone. */
function expectLetGo(): void {
  world.harness.server.collectGarbage();
  expect(plans()).toEqual([]);
  expect(exists()).toBe(false);
  expect(state().metadata).toMatchObject({ finalizers: [], ownerReferences: [] });
  expect(state().metadata.deletionTimestamp).toBeUndefined();
}

describe('a paused object that is deleted', () => {
  beforeEach(() => world.harness.annotate('a', PAUSED));

  test('stays with what it did, and says so once', async () => {
    remove();
    await world.reconcile();
    const { next, writes } = await world.reconcile();
    expect([plans(), next, writes]).toEqual([[], { action: 'wait' }, []]);
    expect(world.harness.object('a').metadata.finalizers).toEqual(['example.com/thing']);
    expect(world.harness.conditions('a')[0]).toBe('Ready=Unknown Paused');
    expect(world.harness.message('a')).toBe(
      'The deletion is paused, and nothing is taken away: remove the annotation kindred.dev/paused to go on with it.',
    );
    expect(world.harness.events.filter(({ action }) => action === 'Delete')).toEqual([
      { regarding: 'a', type: 'Normal', action: 'Delete', reason: 'Paused', message: world.harness.message('a') },
    ]);
  });

  test('goes on once it is unpaused, by another process too', async () => {
    remove();
    await world.reconcile();
    world.restart();
    await world.reconcile();
    expect(plans()).toEqual([]);
    world.harness.annotate('a', {});
    await world.reconcile();
    expect(plans()).toEqual(['thing.down']);
    await world.end({ message: 'Gone.' });
    await world.reconcile();
    expect(exists()).toBe(false);
  });

  test('goes where a person lets it go as it is', async () => {
    remove();
    world.harness.annotate('a', { ...PAUSED, 'kindred.dev/force-remove': 'true' });
    await world.reconcile();
    expect([plans(), exists()]).toEqual([[], false]);
  });
});

describe('a removal under way', () => {
  const stopsBeforeTheNextStep = 'ends after the step under way';
  beforeEach(async () => {
    remove();
    await world.reconcile();
    expect(plans()).toEqual(['thing.down']);
  });

  const step = (): void => world.open[0]!.run.assertMayContinue();

  /** As a plan does before each of its steps. */
  async function goOn(): Promise<void> {
    expect(step).toThrow('nothing more is taken away');
    let error: unknown;
    try {
      step();
    } catch (thrown) {
      error = thrown;
    }
    await world.end(error as Error);
  }

  test(`${stopsBeforeTheNextStep} when its object is paused, and goes on afterwards, as the same attempt`, async () => {
    step();
    world.harness.annotate('a', PAUSED);
    await goOn();
    await world.reconcile();
    expect(world.harness.conditions('a')[0]).toBe('Ready=Unknown Paused');
    world.harness.annotate('a', {});
    await world.reconcile();
    expect(world.open[0]?.run.attempt).toBe(1);
    step();
  });

  test(`${stopsBeforeTheNextStep} when its object is orphaned, which then goes`, async () => {
    remove('Orphan');
    await world.reconcile();
    expect(exists()).toBe(true);
    await goOn();
    await world.reconcile();
    expectLetGo();
  });
});

test('a removal that waits for its turn does not begin while its object is paused', async () => {
  world = new World(1);
  for (const name of ['a', 'b']) await world.harness.add(name, { size: 1 });
  for (const name of ['a', 'b']) {
    await world.reconcile(name);
    await world.end({ message: 'Built.' });
    await world.reconcile(name);
  }
  for (const name of ['b', 'a']) {
    world.harness.server.remove(Thing.type, ref(name));
    await world.reconcile(name);
  }
  world.harness.annotate('a', PAUSED);
  await world.end({ message: 'Gone.' });
  expect(plans()).toEqual([]);
});

describe('an object that is deleted with --cascade=orphan', () => {
  const event = expect.objectContaining({ type: 'Normal', action: 'Delete', reason: 'Orphaned' }) as object;

  test('goes, and what it did stays, with its state', async () => {
    remove('Orphan');
    await world.reconcile();
    expect(world.harness.events).toContainEqual(event);
    expectLetGo();
  });

  test.each([
    ['at once', () => undefined],
    ['when it is heard of by the next process', () => world.restart()],
  ])('does so too where the garbage collector was first: %s', async (_, before) => {
    remove('Orphan');
    world.harness.server.collectGarbage();
    expect(world.harness.object('a').metadata.finalizers).toEqual(['example.com/thing']);
    before();
    await world.reconcile();
    expect(world.harness.events).toContainEqual(event);
    expectLetGo();
  });

  test('does so too where the garbage collector comes between its state and its finalizer', async () => {
    const { server } = world.harness;
    let between = true;
    server.before = ({ verb, type }) => {
      if (!between || type !== Thing.type || verb === 'GET') return;
      between = false;
      server.collectGarbage();
      throw apiError(409, 'Conflict', 'the object has been modified');
    };
    remove('Orphan');
    await expect(world.reconcile()).rejects.toThrow('modified');
    expect([between, exists()]).toEqual([false, true]);
    world.restart();
    await world.reconcile();
    expectLetGo();
  });

  test('goes though it is paused, as nothing is taken away', async () => {
    world.harness.annotate('a', PAUSED);
    remove('Orphan');
    await world.reconcile();
    expectLetGo();
  });

  test('waits for the run under way, whose state is no claim on it', async () => {
    world.harness.respec('a', { size: 2 });
    await world.reconcile();
    remove('Orphan');
    world.harness.server.collectGarbage();
    await world.reconcile();
    expect(world.harness.message('a')).toBe('It goes once make has ended, and what it did stays.');
    await world.open[0]!.run.values.put({ token: 'late' });
    expect(state().metadata.ownerReferences).toEqual([]);
    await world.end({ message: 'Built.' });
    await world.reconcile();
    expectLetGo();
  });

  test('has a run that waits for its turn dropped', async () => {
    world = new World(1);
    for (const name of ['a', 'b']) await world.harness.add(name, { size: 1 });
    await world.reconcile('a');
    await world.end({ message: 'Built.' });
    await world.reconcile('a');
    await world.reconcile('b');
    world.harness.respec('a', { size: 2 });
    await world.reconcile('a');
    remove('Orphan');
    await world.reconcile('a');
    await world.end({ message: 'Built.' });
    expectLetGo();
  });

  test('stays until its state is its own, should the server refuse that', async () => {
    const { server } = world.harness;
    server.before = ({ verb, type }) => {
      if (verb === 'PUT' && type === owned.Secret) throw apiError(403, 'Forbidden', 'secrets "a-state" is forbidden');
    };
    remove('Orphan');
    await world.reconcile();
    expect(exists()).toBe(true);
    expect(world.harness.conditions('a')[0]).toBe('Ready=False ErrCleanup');
    server.before = () => undefined;
    world.clock.pass(10_000);
    await world.reconcile();
    expectLetGo();
  });
});
