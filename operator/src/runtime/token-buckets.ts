import type { Clock } from './clock';

/** Options of `TokenBuckets`. */
export interface TokenBucketOptions {
  /** How many tokens a bucket holds, and starts with. @default 25 */
  readonly burst?: number;
  /** One token comes back in so many milliseconds. @default 300000 (5 min) */
  readonly refillMs?: number;
  /** How many buckets are kept; beyond that the one unused for longest is forgotten (that key then starts full). @default 4096 */
  readonly maxKeys?: number;
}

interface Bucket {
  tokens: number;
  readAt: number;
}

/** A token bucket a key. The defaults are those of client-go's event spam filter, per object. */
export class TokenBuckets {
  private readonly buckets = new Map<string, Bucket>();
  private readonly burst: number;
  private readonly refillMs: number;
  private readonly maxKeys: number;

  constructor(
    private readonly clock: Clock,
    options: TokenBucketOptions = {},
  ) {
    this.burst = options.burst ?? 25;
    this.refillMs = options.refillMs ?? 300_000;
    this.maxKeys = options.maxKeys ?? 4096;
  }

  /** Takes one token of the key; false when it has none. */
  take(key: string): boolean {
    const now = this.clock.monotonicMs();
    const old = this.buckets.get(key);
    const tokens =
      old === undefined ? this.burst : Math.min(this.burst, old.tokens + (now - old.readAt) / this.refillMs);
    // Deleted and set anew, so that the map's order is that of use.
    this.buckets.delete(key);
    this.buckets.set(key, { tokens: tokens >= 1 ? tokens - 1 : tokens, readAt: now });
    if (this.buckets.size > this.maxKeys) this.forgetOldest();
    return tokens >= 1;
  }

  private forgetOldest(): void {
    for (const key of this.buckets.keys()) {
      this.buckets.delete(key);
      return;
    }
  }
}
