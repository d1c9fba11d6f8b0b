/** Options of `Backoff`. */
export interface BackoffOptions {
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
 * Exponential backoff by key: `baseMs * 2^failures`, at most `maxMs`, shortened by up to `jitter`, never below `baseMs`.
 * Base and maximum are those of client-go's per-item limiter; the jitter is ours, so that keys that failed together (an API
 * server gone for a while) do not come back together.
 */
export class Backoff<K extends string> {
  private readonly failed = new Map<K, number>();
  private readonly baseMs: number;
  private readonly maxMs: number;
  private readonly jitter: number;
  private readonly random: () => number;

  constructor(options: BackoffOptions = {}) {
    this.baseMs = options.baseMs ?? 5;
    this.maxMs = options.maxMs ?? 1_000_000;
    this.jitter = options.jitter ?? 0.2;
    this.random = options.random ?? Math.random;
  }

  /** Counts one more failure of the key and answers for how many milliseconds it has to wait. */
  next(key: K): number {
    const failures = this.failures(key);
    this.failed.set(key, failures + 1);
    const full = Math.min(this.maxMs, this.baseMs * 2 ** failures);
    return Math.max(this.baseMs, full * (1 - this.jitter * this.random()));
  }

  /** Failures since the key was last forgotten. */
  failures(key: K): number {
    return this.failed.get(key) ?? 0;
  }

  forget(key: K): void {
    this.failed.delete(key);
  }
}
