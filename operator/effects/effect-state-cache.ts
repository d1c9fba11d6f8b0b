import type { KubeObject } from '../../constructs/kube/kube-object';
import type { CleanupFailure, EffectsResult } from '../reconcile/context';
import { uidOf } from '../client/api-client';
import { ApiError } from '../client/errors';
import type { Clock } from '../process/clock';
import { backoffMs, type AttemptBackoff, type EffectState, type EffectStore } from './effect-state';
import { RunInterruptedError, type StatusFields } from './plan-runner';

/** The effect state of one object, kept while the process lives. */
export interface CachedEffectState {
  state: EffectState;
  status: StatusFields;
  /** Whether the state has changes that could not be stored yet. */
  isDirty: boolean;
  /** The hashes of the effects' inputs, by effect, and what of the object they were built for. */
  inputs?: { readonly builtFor: string; readonly hashes: Map<string, string> };
  /** The message of the last problem that an event reported. */
  lastEventMessage?: string;
  /** Why the state must not be stored any more. */
  invalidatedBy?: Error;
  /**
   * The result between runs, and its generation. A repeated probe does not change it before the probe has
   * ended.
   */
  lastIdleResult?: EffectsResult & { readonly generation: number | undefined; readonly version: string };
}

/** The effect states of all objects: each is loaded once, and stored when it changes. */
export class EffectStateCache {
  private readonly known = new Map<string, CachedEffectState>();

  constructor(private readonly store: EffectStore) {}

  /** @throws ApiError, TransportError, PlanError when the state cannot be loaded */
  async of(object: KubeObject): Promise<CachedEffectState> {
    const uid = uidOf(object);
    const known = this.known.get(uid);
    if (known !== undefined) return known;
    const memory: CachedEffectState = { state: await this.store.load(object), status: {}, isDirty: false };
    this.known.set(uid, memory);
    return memory;
  }

  /**
   * Stores the state.
   *
   * @throws ApiError, TransportError, PlanError; after a Conflict (409) this memory can never be stored
   * again, and the next call of `of` loads the state
   */
  async save(object: KubeObject, memory: CachedEffectState): Promise<void> {
    if (memory.invalidatedBy !== undefined) throw memory.invalidatedBy;
    try {
      await this.store.save(object, memory.state);
    } catch (error) {
      // Another process has written the state since: the next reconcile loads what it wrote.
      if (error instanceof ApiError && error.code === 409) {
        memory.invalidatedBy = error;
        this.known.delete(uidOf(object));
      }
      throw error;
    }
    memory.isDirty = false;
    // The object was deleted during this write, so its state was forgotten too early.
    if (isForgotten(memory)) await this.store.forget(object);
  }

  /** Drops the cached state, so that it is loaded again. */
  invalidate(object: KubeObject): void {
    this.known.delete(uidOf(object));
  }

  /**
   * Forgets an object that was deleted. A run that then tries to store something is interrupted: nothing
   * would delete the state again.
   */
  forget(object: KubeObject): void {
    const memory = this.known.get(uidOf(object));
    if (memory !== undefined) {
      memory.invalidatedBy = new RunInterruptedError('The object is gone, and its state with it.');
    }
    this.known.delete(uidOf(object));
    void this.store.forget(object);
  }
}

function isForgotten({ invalidatedBy }: CachedEffectState): boolean {
  return invalidatedBy instanceof RunInterruptedError;
}

/** How often in a row a clean-up may be refused before a person has to help. */
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
 * Spaces and limits the attempts at clean-ups that fail for reasons other than the removal itself, for
 * example a finalizer that the server does not let us remove. Kept while the process lives.
 *
 * Guarantees: refusals are counted at most once per delay, so that an object that is enqueued in between has
 * as much time as one that is not; failures of the server are never counted.
 */
export class CleanupBackoff {
  private readonly failures = new Map<string, Failures>();

  constructor(private readonly options: { readonly clock: Clock; readonly backoff: AttemptBackoff }) {}

  /**
   * Records a failed attempt.
   *
   * @param askedBy - the value of the retry annotation: another value starts the count again
   * @returns after how many milliseconds the next attempt is due; undefined when it was refused as often as
   * allowed
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

  /** Forgets the failures of an object, because an attempt succeeded or the object was deleted. */
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
