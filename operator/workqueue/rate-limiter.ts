/** Options of `RateLimiter`. */
export interface RateLimiterOptions {
  /** The first delay, in milliseconds. @default 5 */
  readonly baseMs?: number;
  /** The longest delay, in milliseconds. @default 1000000 (1000 s) */
  readonly maxMs?: number;
  /** By how much of itself a delay may be shortened at random, 0..1. @default 0.2 */
  readonly jitter?: number;
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number;
}

/**
 * Exponential backoff by key: `baseMs * 2^failures`, at most `maxMs`, shortened by up to `jitter`, never
 * below `baseMs`. A run that an event starts before the delay is over does not lengthen the delay if it
 * fails: otherwise a few seconds of failures in the middle of a rollout, each of whose events starts a run,
 * would be followed by minutes of waiting. So a key waits for about as long as it has failed, no longer.
 *
 * Base and maximum are those of client-go's per-item limiter; the jitter is ours, so that keys that failed
 * together (while an API server was down) do not come back together.
 */
export class RateLimiter<K extends string> {
  private readonly failing = new Map<K, Failing>();
  private readonly baseMs: number;
  private readonly maxMs: number;
  private readonly jitter: number;
  private readonly random: () => number;

  constructor(options: RateLimiterOptions = {}) {
    this.baseMs = options.baseMs ?? 5;
    this.maxMs = options.maxMs ?? 1_000_000;
    this.jitter = options.jitter ?? 0.2;
    this.random = options.random ?? Math.random;
  }

  /**
   * Records a failure of the key.
   *
   * @param now in milliseconds, on a monotonic clock
   * @returns for how many milliseconds it has to wait
   */
  next(key: K, now: number): number {
    const before = this.failing.get(key);
    if (before !== undefined && now < before.dueAt) return Math.max(this.baseMs, before.dueAt - now);
    const failures = before?.failures ?? 0;
    const full = Math.min(this.maxMs, this.baseMs * 2 ** failures);
    const delay = Math.max(this.baseMs, full * (1 - this.jitter * this.random()));
    this.failing.set(key, { failures: failures + 1, dueAt: now + delay });
    return delay;
  }

  /** Failures since the key was last forgotten, without those that came before the delay was over. */
  failures(key: K): number {
    return this.failing.get(key)?.failures ?? 0;
  }

  forget(key: K): void {
    this.failing.delete(key);
  }
}

interface Failing {
  readonly failures: number;
  /** When the delay is over. */
  readonly dueAt: number;
}
