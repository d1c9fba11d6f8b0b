import { World } from './world';

// A plan that throws something else than a PlanError: a fault of its author.

let world: World;

beforeEach(async () => {
  world = new World();
  await world.harness.add('a', { size: 1 });
  await world.reconcile();
  await world.end(new TypeError("Cannot read properties of undefined (reading 'x')"));
});

test('is named in Ready, with the line of its source, and its stack is for the log', async () => {
  const { next } = await world.reconcile();
  expect(world.harness.conditions('a')[0]).toBe('Ready=False ErrRun');
  expect(world.harness.message('a')).toMatch(
    /^thing\.up: TypeError: Cannot read properties of undefined \(reading 'x'\) \(.*thrown-plans\.test\.ts:11:19\) \(make, attempt 1 of 3 failed/,
  );
  const [thrown] = world.thrown;
  expect(thrown?.calledFunction).toBe('thing.up');
  expect(thrown?.stack).toContain('thrown-plans.test.ts:11:19');
  expect(world.harness.message('a')).not.toContain('\n');
  expect(next.requeueAfterMs).toBe(1000);
});

test('is tried again, and nothing of it stays when it succeeds', async () => {
  const { next } = await world.reconcile();
  world.clock.pass(next.requeueAfterMs ?? 0);
  await world.reconcile();
  await world.end({ message: 'Built.', status: { built: 1 } });
  await world.reconcile();
  expect(world.harness.conditions('a')).toEqual(['Ready=True Ready', 'Made=True Succeeded']);
  expect(world.thrown).toHaveLength(1);
});
