/**
 * Time as the operator sees it, injectable so that tests need no waiting.
 *
 * Caveat: `monotonicMs` goes on while the process is stopped (SIGSTOP, a frozen cgroup) but not while the
 * whole machine is suspended (Linux CLOCK_MONOTONIC). To notice that as well, compare it with `wallMs`.
 */
export interface Clock {
  /** Milliseconds since an arbitrary start; never steps, never goes back. For every measured duration and deadline. */
  monotonicMs(): number;
  /** Milliseconds since the Unix epoch; may step either way. Only for timestamps that people read. */
  wallMs(): number;
  /** Calls `run` once, `ms` milliseconds from now. The returned function cancels it and may be called at any time. */
  setTimer(run: () => void, ms: number, options?: TimerOptions): () => void;
  /** Calls `run` in the next turn of the event loop, after timers and I/O had theirs. */
  nextTurn(run: () => void): void;
}

/** How a timer is set. */
interface TimerOptions {
  /** True: the timer alone does not keep the process alive. @default false */
  readonly background?: boolean;
}

/** The longest delay that Node's timers support, in milliseconds; a longer one would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** The real clock. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer(run, ms, options) {
    const timer = setTimeout(run, Math.min(Math.max(ms, 0), MAX_TIMER_MS));
    if (options?.background === true) timer.unref();
    return () => {
      clearTimeout(timer);
    };
  },
  nextTurn(run) {
    setImmediate(run);
  },
};

/**
 * A `metav1.MicroTime`: RFC 3339 in UTC with exactly six fractional digits. The API server rejects three,
 * which is what `toISOString` gives.
 *
 * @param wallMs milliseconds since the Unix epoch.
 */
export function microTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '000Z');
}
