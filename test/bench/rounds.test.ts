import { FakeStage, firstWriteMs, paces } from './fake-bench-env';
import { Rounds, type RoundOptions } from '../../bench/rounds';

const { signal } = new AbortController();
const options: RoundOptions = { objects: 10, names: ['kindred', 'tuned', 'plain'], edits: 0, backwards: false };

/** Who did something, one after the other. */
function order({ told }: FakeStage): readonly string[] {
  return told.filter((act) => act in paces);
}

test('everyone has a turn, and each operator a restart', async () => {
  const stage = new FakeStage();
  await new Rounds(stage, signal).round(options);
  expect(order(stage)).toEqual(['same', 'kindred', 'kindred', 'tuned', 'tuned', 'plain', 'plain', 'apply']);
});

test('a round can go backwards', async () => {
  const stage = new FakeStage();
  await new Rounds(stage, signal).round({ ...options, backwards: true });
  expect(order(stage)).toEqual(['apply', 'plain', 'plain', 'tuned', 'tuned', 'kindred', 'kindred', 'same']);
});

test('only those take part that are named, and the bare requests', async () => {
  const stage = new FakeStage();
  const { operators } = await new Rounds(stage, signal).round({ ...options, names: ['tuned'] });
  expect(order(stage)).toEqual(['same', 'tuned', 'tuned', 'apply']);
  expect(Object.keys(operators)).toEqual(['tuned']);
});

test('the machine is calm before each of them', async () => {
  const stage = new FakeStage();
  await new Rounds(stage, signal).round(options);
  expect(stage.told.filter((_, i) => i % 2 === 0)).toEqual(Array.from({ length: 8 }, () => 'calm'));
});

test('rates go from the first write until all is done, whatever is written after that', async () => {
  const { operators, limits } = await new Rounds(new FakeStage(), signal).round(options);
  expect(operators.kindred?.converged.objectsPerSecond).toBeCloseTo(200, 10);
  expect(operators.tuned?.converged.objectsPerSecond).toBeCloseTo(100, 10);
  expect(operators.plain?.converged.objectsPerSecond).toBeCloseTo(50, 10);
  expect(limits.same).toEqual({ objectsPerSecond: expect.closeTo(500, 10) as number, cpuSeconds: 0.5, peakMiB: 50 });
  expect(limits.apply?.objectsPerSecond).toBeCloseTo(250, 10);
});

test('an operator is told of with its times, its writes and what it used', async () => {
  const { operators } = await new Rounds(new FakeStage(), signal).round(options);
  expect(operators.tuned).toMatchObject({
    converged: { firstWriteMs, convergedMs: firstWriteMs + 100, lastWriteMs: firstWriteMs + 1100, writesPerObject: 2 },
    restarted: { reconcilingMs: 250, writeCount: 20, cpuSeconds: 2, peakMiB: 80 },
  });
  expect(operators.tuned).not.toHaveProperty('edits');
});

test('objects without a status are an error', async () => {
  const stage = new FakeStage();
  const requests = stage.requests.bind(stage);
  stage.requests = async () => ({ ...(await requests()), done: 9 });
  await expect(new Rounds(stage, signal).round(options)).rejects.toThrow('9 of 10 objects were given a status');
});

test.each([
  ['kindred 1', 'Kindred'],
  ['tuned 2', 'controller-runtime, tuned, started again'],
  ['apply 1', 'bare requests (apply + apply)'],
])('a Deployment that is missing after the work of %s is an error', async (lazy, who) => {
  const stage = new FakeStage();
  stage.lazy = lazy;
  const round = new Rounds(stage, signal).round(options);
  await expect(round).rejects.toThrow(`${who}: the work on 10 objects in bench-`);
  await expect(round).rejects.toThrow('is not done: app-0: no Deployment');
});

test('so many objects are edited twice, each operator by itself', async () => {
  const stage = new FakeStage(['kindred', 'tuned']);
  const { operators } = await new Rounds(stage, signal).round({ ...options, edits: 3 });
  for (const run of [operators.kindred, operators.tuned]) {
    expect([run?.edits?.first.length, run?.edits?.later.length, run?.edits?.request.length]).toEqual([3, 3, 6]);
  }
});
