import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { EffectRecord } from './effect-record';

/** What is kept for one object. */
export interface EffectState {
  /** By effect. */
  readonly records: Readonly<Record<string, EffectRecord>>;
  /** Secret values, by name. */
  readonly values: Readonly<Record<string, string>>;
}

export const EMPTY_STATE: EffectState = { records: {}, values: {} };

/** Where the state of effects is kept. One process uses it at a time. */
export interface EffectStore {
  /** The state of an object; empty when none stands. @throws ApiError, TransportError, PlanError */
  readonly load: (owner: KubeObject) => Promise<EffectState>;
  /** Stores it as a whole. @throws ApiError, TransportError, PlanError */
  readonly save: (owner: KubeObject, state: EffectState) => Promise<void>;
  /** @throws PlanError `ErrStateTooLarge` when such a state could not be stored */
  readonly assertFits: (owner: KubeObject, state: EffectState) => Promise<void>;
  /** Brings whether it goes with its owner to what the owner asks for now. @throws ApiError, TransportError */
  readonly claim: (owner: KubeObject) => Promise<void>;
  /**
   * Whether its owner, which is being deleted, was deleted with `--cascade=orphan`, as far as the state can tell: the garbage collector has cut it
   * off its owner. @throws ApiError, TransportError
   */
  readonly isOrphaned: (owner: KubeObject) => Promise<boolean>;
  /** Cuts it off its owner, which goes: it stays. @returns what stays, as `namespace/name` @throws ApiError, TransportError */
  readonly orphan: (owner: KubeObject) => Promise<readonly string[]>;
  /** Its owner is about to go, and needs it no more: whoever deletes it may have it. @throws ApiError, TransportError */
  readonly release: (owner: KubeObject) => Promise<void>;
  /**
   * Its owner is gone: nothing of its state stays in memory. Where it went without a release, since somebody took its finalizer off, that is made
   * up for, as well as can be. Does not reject.
   */
  readonly forget: (owner: KubeObject) => Promise<void>;
}

/** Keeps nothing: for probes, whose repetition does no harm. The desk itself remembers while the process lives. */
export const noStore: EffectStore = {
  load: () => Promise.resolve(EMPTY_STATE),
  save: () => Promise.resolve(),
  assertFits: () => Promise.resolve(),
  claim: () => Promise.resolve(),
  isOrphaned: () => Promise.resolve(false),
  orphan: () => Promise.resolve([]),
  release: () => Promise.resolve(),
  forget: () => Promise.resolve(),
};
