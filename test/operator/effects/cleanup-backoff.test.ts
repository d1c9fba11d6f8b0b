import { CleanupBackoff } from '../../../operator/effects/effect-state-cache';
import { TestClock } from './world';

let clock: TestClock;
let attempts: CleanupBackoff;

beforeEach(() => {
  clock = new TestClock();
  attempts = new CleanupBackoff({ clock, backoff: { baseMs: 1000, maxMs: 4000 } });
});

/** So many attempts, each made when the one before has said. */
function failures(times: number, why: 'refused' | 'unavailable', askedBy = ''): readonly (number | undefined)[] {
  return Array.from({ length: times }, () => {
    const requeueAfterMs = attempts.recordFailure('uid', askedBy, why);
    clock.pass(requeueAfterMs ?? 0);
    return requeueAfterMs;
  });
}

test('refusals wait longer each time, and end with the fifth', () => {
  expect(failures(5, 'refused')).toEqual([1000, 2000, 4000, 4000, undefined]);
  expect(failures(1, 'refused')).toEqual([undefined]);
});

test('failures of the server wait longer each time, and have no end', () => {
  expect(failures(50, 'unavailable')).toEqual([1000, 2000, ...Array.from({ length: 48 }, () => 4000)]);
});

test('failures of the server count for no refusal, before, between or after', () => {
  failures(10, 'unavailable');
  expect(failures(2, 'refused')).toEqual([1000, 2000]);
  failures(10, 'unavailable');
  expect(failures(3, 'refused')).toEqual([4000, 4000, undefined]);
  clock.pass(4000);
  expect(failures(1, 'unavailable')).toEqual([1000]);
  expect(failures(1, 'refused')).toEqual([undefined]);
});

test('who comes before the time is told how long is left, and is not counted', () => {
  attempts.recordFailure('uid', '', 'refused');
  clock.pass(300);
  for (let i = 0; i < 20; i += 1) expect(attempts.recordFailure('uid', '', 'refused')).toBe(700);
  clock.pass(700);
  expect(failures(4, 'refused')).toEqual([2000, 4000, 4000, undefined]);
});

test('an attempt that goes well, or another retry annotation, begins anew', () => {
  failures(4, 'refused');
  attempts.forget('uid');
  expect(failures(5, 'refused')).toEqual([1000, 2000, 4000, 4000, undefined]);
  expect(failures(5, 'refused', 'again')).toEqual([1000, 2000, 4000, 4000, undefined]);
});

test('each object has its own', () => {
  failures(5, 'refused');
  expect(attempts.recordFailure('other', '', 'refused')).toBe(1000);
});
