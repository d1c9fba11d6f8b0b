import { FakeStage, objectsOf, paces } from './fake-bench-env';
import { Backlog, busyRound, editWhile } from '../../bench/busy-edits';
import { Rounds } from '../../bench/rounds';

const { signal } = new AbortController();

/** Waits until a condition holds. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}

describe('a backlog', () => {
  test('has not begun while nothing is done, and is over when no more than a handful waits', async () => {
    const looks = [
      { open: 0, done: 0 },
      { open: 100, done: 1 },
      { open: 6, done: 95 },
      { open: 5, done: 96 },
      { open: 100, done: 97 },
    ];
    const seen: boolean[] = [];
    const backlog: Backlog = new Backlog(() => {
      if (looks.length < 5) seen.push(backlog.open);
      return Promise.resolve(looks.shift()!);
    }, 1);
    expect(backlog.open).toBe(true);
    await until(() => !backlog.open);
    expect(seen).toEqual([true, true, true]);
    expect(looks).toHaveLength(1); // it is not looked at again
    await backlog.end();
  });

  test('is looked at no more when it is ended', async () => {
    let looks = 0;
    const backlog = new Backlog(() => Promise.resolve({ open: 100, done: (looks += 1) }), 1);
    await until(() => looks > 2);
    await backlog.end();
    const before = looks;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(looks).toBe(before);
  });

  test('is over when it cannot be looked at, and says why', async () => {
    const backlog = new Backlog(() => Promise.reject(new Error('gone')), 1);
    await until(() => !backlog.open);
    await expect(backlog.end()).rejects.toThrow('gone');
  });
});

test('an edit that is under way when the others are done counts: what waits for them would not be seen else', async () => {
  const stage = new FakeStage();
  const edits = await editWhile(() => stage.told.length === 0, stage.client, objectsOf(2), signal);
  expect(stage.told).toEqual(['edit HelloApp app-0']);
  expect([edits.toChild.length, edits.request.length]).toEqual([1, 1]);
});

test.each([
  [false, ['kindred', 'tuned', 'plain']],
  [true, ['plain', 'tuned', 'kindred']],
])('everyone has a turn, backwards: %p', async (backwards, names) => {
  const stage = new FakeStage();
  const round = await busyRound({ stage, rounds: new Rounds(stage, signal), signal }, 10, backwards);
  // Each starts once for the objects that are edited, and once for the others.
  const started = stage.told.filter((act) => act in paces);
  expect(started).toEqual(names.flatMap((name) => [name, name]));
  expect(Object.keys(round)).toEqual(names);
});
