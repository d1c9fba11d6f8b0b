import { TokenBuckets } from '../../../operator/events/event-recorder';
import { ManualClock } from '../support/manual-clock';

describe('TokenBuckets', () => {
  it('gives a burst, then one token a period, and never saves up more than the burst', () => {
    const clock = new ManualClock();
    const buckets = new TokenBuckets(clock, { burst: 2, refillMs: 1000 });
    const take = (): boolean => buckets.take('a');
    expect([take(), take(), take()]).toEqual([true, true, false]);
    clock.advanceSync(999);
    expect(take()).toBe(false);
    clock.advanceSync(1);
    expect([take(), take()]).toEqual([true, false]);
    clock.advanceSync(60_000);
    expect([take(), take(), take()]).toEqual([true, true, false]);
    expect(buckets.take('b')).toBe(true);
  });

  it('forgets the key unused for longest', () => {
    const buckets = new TokenBuckets(new ManualClock(), { burst: 1, maxKeys: 2 });
    expect(['a', 'b', 'a', 'c', 'a', 'b'].map((key) => buckets.take(key))).toEqual([
      true,
      true,
      false,
      true,
      false,
      true,
    ]);
  });
});
