import type { Clock } from '../runtime/clock';
import { backoffMs } from './effect-record';
import type { AttemptBackoff } from './effect-record';

/** How often a clean-up may be refused in a row before a person must look. */
const MAX_REFUSALS = 5;

/** Why a clean-up failed. `refused`: it was answered with no. `unavailable`: the server had no answer to give, which says nothing about the object. */
export type CleanupFailure = 'refused' | 'unavailable';

interface Failures {
  /** The retry annotation that they are counted for. */
  readonly askedBy: string;
  readonly refused: number;
  readonly unavailable: number;
  /** When the next attempt is due, on the monotonic clock, in milliseconds. */
  readonly dueMs: number;
}

/**
 * Spaces and bounds the attempts at cleaning up after objects that fail for reasons other than the removal itself: a finalizer that the server
 * does not let go, say. Remembered while the process lives.
 *
 * Guarantees: refusals are counted at most once a delay, so that an object that is woken in between has as long as one that is left alone;
 * failures of the server are never counted.
 */
export class CleanupAttempts {
  private readonly failures = new Map<string, Failures>();

  constructor(private readonly options: { readonly clock: Clock; readonly backoff: AttemptBackoff }) {}

  /**
   * An attempt failed.
   *
   * @param askedBy - the value of the retry annotation: another one begins anew
   * @returns after how many milliseconds the next one is due; undefined when it was refused as often as it may be
   */
  failed(uid: string, askedBy: string, why: CleanupFailure): number | undefined {
    const nowMs = this.options.clock.monotonicMs();
    const known = this.failures.get(uid);
    const before =
      known?.askedBy === askedBy ? known : { askedBy, refused: 0, unavailable: 0, dueMs: Number.NEGATIVE_INFINITY };
    const after = nowMs < before.dueMs ? before : this.counted(before, why, nowMs);
    this.failures.set(uid, after);
    return why === 'refused' && after.refused >= MAX_REFUSALS ? undefined : after.dueMs - nowMs;
  }

  /** An attempt went well, or the object is gone. */
  forget(uid: string): void {
    this.failures.delete(uid);
  }

  private counted({ askedBy, refused, unavailable }: Failures, why: CleanupFailure, nowMs: number): Failures {
    const delay = (times: number): number => backoffMs(times, this.options.backoff);
    return why === 'refused'
      ? { askedBy, refused: refused + 1, unavailable: 0, dueMs: nowMs + delay(refused + 1) }
      : { askedBy, refused, unavailable: unavailable + 1, dueMs: nowMs + delay(unavailable + 1) };
  }
}
