/** Options of a `Backoff`. */
export interface BackoffOptions {
  /** The first delay, in milliseconds. @default 200 */
  readonly initialMs?: number;
  /** No delay is longer, in milliseconds. @default 30000 */
  readonly maxMs?: number;
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number;
}

/** Doubling delays, each spread over its upper half so that many clients do not come back at once. */
export class Backoff {
  private failures = 0;
  private readonly initialMs: number;
  private readonly maxMs: number;
  private readonly random: () => number;

  constructor(options: BackoffOptions = {}) {
    this.initialMs = options.initialMs ?? 200;
    this.maxMs = options.maxMs ?? 30_000;
    this.random = options.random ?? Math.random;
  }

  /** How often `next` was called since the last reset. */
  get count(): number {
    return this.failures;
  }

  /** The delay before the next attempt, in milliseconds. */
  next(): number {
    const full = Math.min(this.maxMs, this.initialMs * 2 ** this.failures);
    this.failures++;
    return full * (0.5 + this.random() * 0.5);
  }

  reset(): void {
    this.failures = 0;
  }
}
