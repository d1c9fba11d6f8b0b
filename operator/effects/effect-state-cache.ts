import type { KubeObject } from '../../constructs/kube/kube-object';
import type { CleanupFailure, EffectsResult } from '../reconcile/context';
import { uidOf } from '../client/api-client';
import { ApiError } from '../client/errors';
import type { Clock } from '../process/clock';
import { backoffMs, type AttemptBackoff, type EffectState, type EffectStore } from './effect-state';
import { RunInterruptedError, type StatusFields } from './plan-runner';

/** What is remembered of an object while the process lives. */
export interface CachedEffectState {
  state: EffectState;
  status: StatusFields;
  /** What could not be stored yet. */
  isDirty: boolean;
  /** The problem that an event was last recorded of. */
  told?: string;
  /** Why it must not be stored any more. */
  outdated?: Error;
  /** How the object stood between runs, and for which generation. A probe that is repeated is no news until it has ended. */
  settled?: EffectsResult & { readonly generation: number | undefined };
}

/** What is remembered of all objects: their state is loaded once, and stored when it changes. */
export class EffectStateCache {
  private readonly known = new Map<string, CachedEffectState>();

  constructor(private readonly store: EffectStore) {}

  /** @throws ApiError, TransportError, PlanError when the state cannot be had */
  async of(object: KubeObject): Promise<CachedEffectState> {
    const uid = uidOf(object);
    const known = this.known.get(uid);
    if (known !== undefined) return known;
    const memory: CachedEffectState = { state: await this.store.load(object), status: {}, isDirty: false };
    this.known.set(uid, memory);
    return memory;
  }

  /** Stores the state. @throws ApiError, TransportError, PlanError; a Conflict (409) for good: the state is then loaded anew by whoever asks next */
  async save(object: KubeObject, memory: CachedEffectState): Promise<void> {
    if (memory.outdated !== undefined) throw memory.outdated;
    try {
      await this.store.save(object, memory.state);
    } catch (error) {
      // Another process wrote it since: what it wrote counts, and is read anew by the next reconcile.
      if (error instanceof ApiError && error.code === 409) {
        memory.outdated = error;
        this.known.delete(uidOf(object));
      }
      throw error;
    }
    memory.isDirty = false;
    // It went while this was on its way, and so was forgotten too early.
    if (isForgotten(memory)) await this.store.forget(object);
  }

  /** What is known of the state is to be read anew. */
  invalidate(object: KubeObject): void {
    this.known.delete(uidOf(object));
  }

  /** The object is gone. A run under way that wants to store something ends: nobody would take the state away again. */
  forget(object: KubeObject): void {
    const memory = this.known.get(uidOf(object));
    if (memory !== undefined) memory.outdated = new RunInterruptedError('The object is gone, and its state with it.');
    this.known.delete(uidOf(object));
    void this.store.forget(object);
  }
}

function isForgotten({ outdated }: CachedEffectState): boolean {
  return outdated instanceof RunInterruptedError;
}

/** How often a clean-up may be refused in a row before a person must look. */
const MAX_REFUSALS = 5;

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
export class CleanupBackoff {
  private readonly failures = new Map<string, Failures>();

  constructor(private readonly options: { readonly clock: Clock; readonly backoff: AttemptBackoff }) {}

  /**
   * An attempt failed.
   *
   * @param askedBy - the value of the retry annotation: another one begins anew
   * @returns after how many milliseconds the next one is due; undefined when it was refused as often as it may be
   */
  recordFailure(uid: string, askedBy: string, why: CleanupFailure): number | undefined {
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
