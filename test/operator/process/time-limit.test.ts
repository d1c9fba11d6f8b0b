import { runWithTimeLimit, TimeLimitError } from '../../../operator/process/time-limit';

const loop = (): never => {
  for (;;);
};

test.each<[string, () => unknown]>([
  ['a loop', loop],
  [
    'a loop that catches all errors',
    () => {
      for (;;) {
        try {
          loop();
        } catch {
          // Again.
        } finally {
          continue;
        }
      }
    },
  ],
  ['a regular expression that backtracks', () => /^(a+)+$/.test(`${'a'.repeat(40)}b`)],
  [
    'work in native code',
    () => {
      for (;;) JSON.parse(JSON.stringify(Array.from({ length: 1_000 }, (_, i) => ({ i }))));
    },
  ],
])('stops %s', (_, call) => {
  const began = performance.now();
  expect(() => runWithTimeLimit(call, 100)).toThrow(new TimeLimitError(100));
  expect(performance.now() - began).toBeGreaterThan(99);
  expect(runWithTimeLimit(() => 'the next one', 1_000)).toBe('the next one');
});

test('is not a file in the stack of what a function throws, which could be taken for one of the author', () => {
  const stackOf = (): string => String(new Error('mine').stack);
  expect(runWithTimeLimit(stackOf, 1_000)).toMatch(/^ {4}at kindred:time-limit:1:1$/m);
});

test('gives what a function returns, and throws what it throws', () => {
  expect(runWithTimeLimit((): unknown => undefined, 1_000)).toBeUndefined();
  const error = new RangeError('mine');
  const { stack } = error;
  expect(() =>
    runWithTimeLimit(() => {
      throw error;
    }, 1_000),
  ).toThrow(error);
  expect(error.stack).toBe(stack);
});

test('may be used within itself', () => {
  expect(runWithTimeLimit(() => runWithTimeLimit(() => 1, 1_000) + runWithTimeLimit(() => 2, 1_000), 1_000)).toBe(3);
  const inner = (): string => {
    try {
      return runWithTimeLimit(loop, 100);
    } catch (error) {
      return (error as Error).name;
    }
  };
  expect(runWithTimeLimit(inner, 10_000)).toBe('TimeLimitError');
});

test('promises and timers go on afterwards', async () => {
  const before = Promise.resolve('settled');
  expect(() => runWithTimeLimit(loop, 50)).toThrow(TimeLimitError);
  await expect(before).resolves.toBe('settled');
  await new Promise((resolve) => setTimeout(resolve, 1));
});

test('calls a function once more if the process got no processor time, as one that was suspended', () => {
  const never = new Int32Array(new SharedArrayBuffer(4));
  let calls = 0;
  const sleepsOnce = (): number => {
    calls += 1;
    if (calls === 1) Atomics.wait(never, 0, 0, 2_000);
    return calls;
  };
  expect(runWithTimeLimit(sleepsOnce, 1_000)).toBe(2);
  const sleeps = (): string => Atomics.wait(never, 0, 0, 10_000);
  expect(() => runWithTimeLimit(sleeps, 500)).toThrow(TimeLimitError);
});
