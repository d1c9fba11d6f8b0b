import {
  WorkQueue,
  type Priority,
  type QueueMetrics,
  type UnfinishedWork,
} from '../../../operator/workqueue/work-queue';
import { ManualClock } from '../support/manual-clock';
import { cpuTimeMs } from '../../support/processes';

function takeAll(queue: WorkQueue<string>): string[] {
  const keys: string[] = [];
  for (let taken = queue.take(); taken !== undefined; taken = queue.take()) keys.push(taken.key);
  return keys;
}

class RecordedMetrics implements QueueMetrics {
  readonly calls: string[] = [];
  unfinished: () => UnfinishedWork = () => ({ totalSeconds: 0, longestSeconds: 0 });
  added = (priority: Priority): void => void this.calls.push(`added ${priority}`);
  moved = (from: Priority, to: Priority): void => void this.calls.push(`moved ${from} ${to}`);
  taken = (priority: Priority, seconds: number): void => void this.calls.push(`taken ${priority} ${seconds}`);
  finished = (seconds: number): void => void this.calls.push(`finished ${seconds}`);
  retried = (): void => void this.calls.push('retried');
  observeUnfinished = (read: () => UnfinishedWork): void => void (this.unfinished = read);
}

describe('WorkQueue', () => {
  let clock: ManualClock;
  let queue: WorkQueue<string>;

  beforeEach(() => {
    clock = new ManualClock();
    queue = new WorkQueue({ clock, backoff: { random: () => 0 } });
  });

  it('holds a key once, however often it is added', () => {
    for (const key of ['a', 'b', 'a', 'a', 'b']) queue.add(key);
    expect(queue.depth).toBe(2);
    expect(takeAll(queue)).toEqual(['a', 'b']);
  });

  it('takes user keys before resync keys, and each first in, first out', () => {
    queue.add('r1', 'resync');
    queue.add('u1', 'user');
    queue.add('r2', 'resync');
    queue.add('u2', 'user');
    expect(takeAll(queue)).toEqual(['u1', 'u2', 'r1', 'r2']);
  });

  it('tells which keys are taken next, without those that run, wait for their time, or were dropped', () => {
    queue.add('r1', 'resync');
    for (const key of ['u1', 'u2', 'u3']) queue.add(key, 'user');
    queue.addAfter('later', 1000);
    expect([0, 2, 9].map((most) => queue.next(most))).toEqual([[], ['u1', 'u2'], ['u1', 'u2', 'u3', 'r1']]);
    queue.take();
    queue.add('u1');
    expect(queue.next(9)).toEqual(['u2', 'u3', 'r1']);
    expect(takeAll(queue)).toEqual(['u2', 'u3', 'r1']);
    queue.add('u4');
    queue.close();
    expect(queue.next(9)).toEqual([]);
  });

  it('moves a waiting resync key up when a user change comes, and never down', () => {
    for (const key of ['r1', 'r2', 'r3']) queue.add(key, 'resync');
    queue.add('r2', 'user');
    queue.add('r2', 'resync');
    expect(queue.take()).toEqual({ key: 'r2', priority: 'user' });
    expect(takeAll(queue)).toEqual(['r1', 'r3']);
  });

  it('does not hand out a key that runs; runs it again afterwards', () => {
    queue.add('a');
    queue.take();
    queue.add('a');
    expect(queue.take()).toBeUndefined();
    expect(queue.depth).toBe(1);
    queue.done('a');
    expect(takeAll(queue)).toEqual(['a']);
    queue.done('a');
    expect(queue.take()).toBeUndefined();
  });

  it('gives a key added while it runs the priority of that run, unless told otherwise', () => {
    queue.add('a', 'resync');
    queue.take();
    queue.addRateLimited('a');
    clock.advanceSync(5);
    queue.done('a');
    expect(queue.take()?.priority).toBe('resync');
    queue.add('a', 'user');
    queue.done('a');
    expect(queue.take()?.priority).toBe('user');
  });

  it('refuses done for a key that does not run', () => {
    expect(() => queue.done('a')).toThrow(/done\("a"\).*not running/);
  });

  describe('delays', () => {
    it('wakes keys in the order of their times, not of their adds', () => {
      queue.addAfter('late', 300);
      queue.addAfter('early', 100);
      queue.addAfter('middle', 200);
      expect(queue.delayedCount).toBe(3);
      clock.advanceSync(99);
      expect(queue.take()).toBeUndefined();
      clock.advanceSync(1);
      expect(takeAll(queue)).toEqual(['early']);
      clock.advanceSync(500);
      expect(takeAll(queue)).toEqual(['middle', 'late']);
    });

    it('keeps the earliest of several', () => {
      queue.addAfter('a', 100);
      queue.addAfter('a', 500);
      queue.addAfter('b', 500);
      queue.addAfter('b', 100);
      clock.advanceSync(100);
      expect(takeAll(queue)).toEqual(['a', 'b']);
      clock.advanceSync(1000);
      expect(queue.depth).toBe(0);
    });

    it('lets a run consume the pending delay, and keeps one that was asked for during the run', () => {
      queue.addAfter('a', 100);
      queue.add('a');
      expect(takeAll(queue)).toEqual(['a']);
      expect(queue.delayedCount).toBe(0);
      queue.addAfter('a', 100);
      queue.done('a');
      expect(queue.take()).toBeUndefined();
      clock.advanceSync(100);
      expect(takeAll(queue)).toEqual(['a']);
    });

    it('parks a key whose delay ends while it runs', () => {
      queue.add('a');
      queue.take();
      queue.addAfter('a', 10);
      clock.advanceSync(10);
      expect(queue.take()).toBeUndefined();
      queue.done('a');
      expect(takeAll(queue)).toEqual(['a']);
    });

    it('sets one timer, whatever the number of keys', () => {
      for (let i = 0; i < 1000; i++) queue.addAfter(`k${i}`, 1000 - i);
      expect(clock.timerCount).toBe(1);
    });

    it('bears delays beyond what one timer can hold', () => {
      const forty = 40 * 24 * 3600 * 1000;
      queue.addAfter('a', forty);
      clock.advanceSync(forty - 1);
      expect(queue.depth).toBe(0);
      clock.advanceSync(1);
      expect(queue.depth).toBe(1);
    });

    it('takes zero and less as now, and refuses what is no number', () => {
      queue.addAfter('a', 0);
      queue.addAfter('b', -5);
      expect(takeAll(queue)).toEqual(['a', 'b']);
      expect(() => queue.addAfter('a', Number.NaN)).toThrow(RangeError);
      expect(() => queue.addAfter('a', Infinity)).toThrow(RangeError);
    });
  });

  describe('backoff', () => {
    /** Fails, and again as often as the delay is over. @returns the delays */
    async function fail(key: string, times: number): Promise<readonly number[]> {
      const delays: number[] = [];
      for (let i = 0; i < times; i++) {
        const delay = queue.addRateLimited(key);
        delays.push(delay);
        await clock.advance(delay);
      }
      return delays;
    }

    it('doubles from 5 ms to 1000 s, per key, until forgotten', async () => {
      const delays = await fail('a', 20);
      expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40]);
      expect(delays[19]).toBe(1_000_000);
      expect(queue.failures('a')).toBe(20);
      expect(queue.addRateLimited('b')).toBe(5);
      queue.forget('a');
      expect(queue.failures('a')).toBe(0);
      expect(queue.addRateLimited('a')).toBe(5);
    });

    it('shortens delays at random by up to a fifth, never below the first', async () => {
      queue = new WorkQueue({ clock, backoff: { random: () => 0.999999 } });
      const [first, second] = await fail('a', 2);
      expect(first).toBe(5);
      expect(second).toBeCloseTo(8, 3);
    });

    it('is not lengthened by a run that came before its time, and failed too', async () => {
      await fail('a', 3);
      expect(queue.addRateLimited('a')).toBe(40);
      await clock.advance(10);
      expect(queue.addRateLimited('a')).toBe(30);
      await clock.advance(29);
      expect(queue.addRateLimited('a')).toBe(5);
      expect(queue.failures('a')).toBe(4);
      await clock.advance(1);
      expect(queue.addRateLimited('a')).toBe(80);
    });

    it('gives way to a change by the user', async () => {
      await fail('a', 19);
      queue.addRateLimited('a', 'resync');
      queue.add('a', 'user');
      expect(queue.take()).toEqual({ key: 'a', priority: 'user' });
    });
  });

  it('ignores everything after close, but lets running keys end', () => {
    queue.add('a');
    queue.add('b');
    queue.addAfter('c', 10);
    queue.take();
    queue.close();
    queue.add('d');
    expect(queue.take()).toBeUndefined();
    expect(clock.timerCount).toBe(0);
    queue.done('a');
    expect(queue.running).toEqual([]);
  });

  it('bears 20,000 keys', () => {
    const keys = Array.from({ length: 20_000 }, (_, i) => `namespace-${i % 100}/name-${i}`);
    for (const key of keys) queue.add(key, 'resync');
    for (const key of keys) queue.add(key, 'user');
    for (const key of keys) queue.addAfter(`${key}-later`, 1 + (key.length % 7));
    const started = cpuTimeMs();
    expect(takeAll(queue)).toHaveLength(20_000);
    clock.advanceSync(10);
    expect(takeAll(queue)).toHaveLength(20_000);
    // Generous: an O(n) operation would take minutes here, not milliseconds.
    expect(cpuTimeMs() - started).toBeLessThan(5000);
  });

  it('reports to its metrics as controller-runtime does', () => {
    const metrics = new RecordedMetrics();
    queue = new WorkQueue({ clock, metrics });
    queue.add('a', 'resync');
    queue.add('a', 'user');
    queue.addAfter('b', 50);
    clock.advanceSync(1500);
    queue.take();
    clock.advanceSync(500);
    expect(metrics.unfinished()).toEqual({ totalSeconds: 0.5, longestSeconds: 0.5 });
    queue.done('a');
    queue.take();
    expect(metrics.calls).toEqual([
      'added resync',
      'moved resync user',
      'retried',
      'added user',
      'taken user 1.5',
      'finished 0.5',
      'taken user 1.95',
    ]);
  });
});
