import type { EffectPhase } from '../../constructs/kind/effects';
import type { AnyKind, KindObject, Reason } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { CacheView } from '../informer/cache-view';
import type { FieldProjection } from '../informer/projection';
import type { ApiClient, ObjectRef } from '../client/api-client';
import type { DriftBackoff } from '../apply/drift-backoff';
import type { OwnCondition, Readiness } from '../status/conditions';
import type { SharedStates } from './shared-keys';

/** Something that happened to an object, for `kubectl describe` and `kubectl events`. */
export interface ObjectEvent extends Reason {
  readonly type: 'Normal' | 'Warning';
  /** What was being done: CamelCase. */
  readonly action: string;
}

/** What a reconcile of one kind works with. */
export interface ReconcileContext {
  readonly kind: AnyKind;
  readonly client: ApiClient;
  /** The objects of the kind. */
  readonly objects: CacheView;
  /** The cache of a child type. */
  readonly children: (type: ResourceType) => CacheView;
  /** Whether the server does not have a type. What its cache holds is what there was before. */
  readonly isMissing: (type: ResourceType) => boolean;
  readonly shared: SharedStates;
  /** Records an event; never blocks and never fails. */
  readonly record: (regarding: KubeObject, event: ObjectEvent) => void;
  /** Told that a child was written, and why. */
  readonly onWrite: (write: ChildWriteEvent) => void;
  readonly driftBackoff: DriftBackoff;
  /** What the caches keep of the children. */
  readonly projection: FieldProjection;
  /** Where the kind's effects are asked for; a kind that has some needs it. */
  readonly effects?: Effects;
  /** The current time, RFC 3339 in whole seconds. */
  readonly now: () => string;
}

/** The name of a child that cannot be written yet. */
export interface AwaitedName {
  readonly type: ResourceType;
  readonly ref: ObjectRef;
}

/** A write to a child. */
export interface ChildWriteEvent {
  readonly owner: string;
  readonly type: ResourceType;
  readonly ref: ObjectRef;
  readonly action: 'created' | 'applied' | 'deleted';
  /** The first path that differed, of an apply. */
  readonly because?: string;
}

/** What comes after a reconcile. */
export interface ReconcileResult {
  /** `wait`: nothing until an event comes. `retry`: run again after the backoff. */
  readonly action: 'wait' | 'retry';
  /** Run again after this long at the latest, in milliseconds. */
  readonly afterMs?: number;
  /** What is wrong, for metrics and logs. */
  readonly failed?: Reason;
  /** Run again when anything happens to one of these names. */
  readonly awaited?: readonly AwaitedName[];
}

/** How the effects of an object stand. */
export interface EffectsResult {
  /** Nothing is left to do, for now. */
  readonly done: boolean;
  /** Why not. */
  readonly readiness?: Readiness;
  /** Fields of the object's own status that the effects gave. */
  readonly status: Readonly<Record<string, unknown>>;
  readonly conditions: readonly OwnCondition[];
  /** Look again after so long, in milliseconds. */
  readonly afterMs?: number;
}

/** Why a clean-up failed. `refused`: it was answered with no. `unavailable`: the server had no answer to give, which says nothing about the object. */
export type CleanupFailure = 'refused' | 'unavailable';

/** What a reconcile asks of whoever carries a kind's effects out. The engine of effects/ implements it. */
export interface Effects {
  /**
   * Goes on with the effects of a phase.
   *
   * @throws ApiError, TransportError when the state or something that is read cannot be had
   */
  reconcile(object: KubeObject, self: KindObject<AnyKind>, phase: EffectPhase): Promise<EffectsResult>;

  /**
   * Whether anything was ever begun for an object: then something may have to be taken away.
   *
   * @throws ReconcileError `ErrStateMissing` when its status says so, but nothing is known of it any more; `ErrResourceExists` when its status says
   * so, but its state is another's now; ApiError, TransportError when the state cannot be had
   */
  hasStarted(object: KubeObject): Promise<boolean>;

  /**
   * Whether the object goes with `--cascade=orphan`: what it did stays. Its own finalizers tell of that only until the garbage collector has done
   * its part, which may be before anybody looks; then its state does.
   *
   * @throws ApiError, TransportError when the state cannot be had
   */
  isOrphaned(object: KubeObject): Promise<boolean>;

  /**
   * Lets what the object did stay when it goes: its state has no owner any more. A run under way comes to its end first, so that the state tells
   * of all that was done.
   *
   * @returns why the object cannot go yet, if so
   * @throws ApiError, TransportError when the state cannot be cut off
   */
  orphan(object: KubeObject): Promise<Readiness | undefined>;

  /**
   * All that was to be taken away has been: the object's finalizer is dropped next, and its state is held no longer.
   *
   * @throws ApiError, TransportError when the state cannot be let go; whatever `assertMayRun` throws
   */
  releaseState(object: KubeObject): Promise<void>;

  /**
   * The clean-up after an object failed otherwise: its finalizer could not be dropped, say.
   *
   * @returns after how many milliseconds it is to be tried again; undefined when it was refused as often as it may be: then a person must look
   */
  recordCleanupFailure(object: KubeObject, why: CleanupFailure): number | undefined;

  /** The clean-up came as far as it could, without a failure: what failed before is not held against it. */
  resetCleanupBackoff(object: KubeObject): void;

  /** The object is gone. */
  forget(object: KubeObject): void;
}

/** What the engine is told about a kind whose effects it carries out. */
export interface EffectHost {
  readonly client: ApiClient;
  readonly record: (regarding: KubeObject, event: ObjectEvent) => void;
  readonly enqueue: (object: KubeObject) => void;
  readonly getCached: (object: KubeObject) => KubeObject | undefined;
  readonly assertMayRun: () => void;
}

/** What an operator is given to carry effects out with. */
export interface EffectEngine {
  /** The plans that it can carry out. */
  readonly plans: readonly string[];
  /** How long the steps under way may take to end after a stop, in milliseconds. */
  readonly drainMs: number;
  /** @param stop aborts at an orderly stop */
  start(stop: AbortSignal): RunningEffects;
}

/** The engine at work. */
export interface RunningEffects {
  of(kind: AnyKind, host: EffectHost): Effects;
  /** Resolves when nothing is under way. */
  waitUntilIdle(): Promise<void>;
  /** How many runs are under way. */
  readonly size: number;
}
