import type { KubeObject } from '../../../constructs/kube/kube-object';
import { ApiError } from '../client/errors';
import { uidOf } from '../reconcile/object-ref';
import type { EffectsFound } from './effect-desk-options';
import type { EffectState, EffectStore } from './effect-store';
import { RunInterrupted, type StatusFields } from './plan-runner';

/** What is remembered of an object while the process lives. */
export interface Memory {
  state: EffectState;
  status: StatusFields;
  /** What could not be stored yet. */
  unsaved: boolean;
  /** The problem that an event was last recorded of. */
  told?: string;
  /** Why it must not be stored any more. */
  outdated?: Error;
  /** How the object stood between runs, and for which generation. A probe that is repeated is no news until it has ended. */
  settled?: EffectsFound & { readonly generation: number | undefined };
}

/** What is remembered of all objects: their state is loaded once, and stored when it changes. */
export class EffectMemories {
  private readonly known = new Map<string, Memory>();

  constructor(private readonly store: EffectStore) {}

  /** @throws ApiError, TransportError, PlanError when the state cannot be had */
  async of(object: KubeObject): Promise<Memory> {
    const uid = uidOf(object);
    const known = this.known.get(uid);
    if (known !== undefined) return known;
    const memory: Memory = { state: await this.store.load(object), status: {}, unsaved: false };
    this.known.set(uid, memory);
    return memory;
  }

  /** Stores the state. @throws ApiError, TransportError, PlanError; a Conflict (409) for good: the state is then loaded anew by whoever asks next */
  async save(object: KubeObject, memory: Memory): Promise<void> {
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
    memory.unsaved = false;
    // It went while this was on its way, and so was forgotten too early.
    if (isForgotten(memory)) await this.store.forget(object);
  }

  /** What is known of the state is to be read anew. */
  drop(object: KubeObject): void {
    this.known.delete(uidOf(object));
  }

  /** The object is gone. A run under way that wants to store something ends: nobody would take the state away again. */
  forget(object: KubeObject): void {
    const memory = this.known.get(uidOf(object));
    if (memory !== undefined) memory.outdated = new RunInterrupted('The object is gone, and its state with it.');
    this.known.delete(uidOf(object));
    void this.store.forget(object);
  }
}

function isForgotten({ outdated }: Memory): boolean {
  return outdated instanceof RunInterrupted;
}
