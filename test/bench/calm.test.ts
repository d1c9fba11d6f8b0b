import { waitForIdleMachine, type Ticks } from '../../bench/bench-env';

/** A machine that is as busy as told from look to look, and then for ever as at last. */
function machine(busy: readonly number[]): { readonly read: () => Ticks; readonly looks: () => number } {
  const sums = { idle: 0, all: 0 };
  let looks = -1; // the first only begins the count
  const read = (): Ticks => {
    looks += 1;
    sums.idle += 100 * (1 - (busy[Math.min(looks - 1, busy.length - 1)] ?? 0));
    sums.all += 100;
    return { ...sums };
  };
  return { read, looks: () => looks };
}

test.each([
  [[0.1], 1],
  [[0.9, 0.5, 0.1, 0.9], 3],
  [[1], 10],
])('a machine that is busy for %p of the time is waited for with %p looks', async (busy, expected) => {
  const { read, looks } = machine(busy);
  await waitForIdleMachine(read, 1);
  expect(looks()).toBe(expected);
});
