import type { EffectPhase } from '../../constructs/kind/effects';
import type { AnyKind, KindObject, Reason } from '../../constructs/kind/kind';
import type { KindFunctionError } from '../../constructs/kube/function-error';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { CacheView } from '../informer/cache-view';
import type { FieldProjection } from '../informer/field-projection';
import type { ApiClient, ObjectRef } from '../client/api-client';
import type { DriftBackoff } from '../apply/drift-backoff';
import type { OwnCondition, Readiness } from '../status/conditions';
import type { DeletedCompletions } from './completions';
import type { FunctionLimits } from './function-limits';
import type { ObjectRenderer } from './render-object';
import type { SharedStates } from './shared-keys';

/** What a reconcile of one kind works with. */
export interface ReconcileContext {
  readonly kind: AnyKind;
  readonly client: ApiClient;
  /** The objects of the kind. */
  readonly objects: CacheView;
  /** The cache of a child type. */
  readonly children: (type: ResourceType) => CacheView;
  /** Whether the server lacks a type. Its cache then still has the objects from before. */
  readonly isMissing: (type: ResourceType) => boolean;
  readonly shared: SharedStates;
  /** Records an event; never blocks and never fails. */
  readonly record: (regarding: KubeObject, event: ObjectEvent) => void;
  /** Called after a child was written. */
  readonly onWrite: (write: ChildWriteEvent) => void;
  readonly driftBackoff: DriftBackoff;
  /** The children that were current when they were deleted. */
  readonly completions: DeletedCompletions;
  /** Calls the kind's functions. */
  readonly limits: FunctionLimits;
  readonly renderer: ObjectRenderer;
  /** What the caches keep of the children. */
  readonly projection: FieldProjection;
  /** Executes the kind's effects; a kind that has effects needs it. */
  readonly effects?: Effects;
  /** The current time, RFC 3339 in whole seconds. */
  readonly now: () => string;
}

/** Something that happened to an object, for `kubectl describe` and `kubectl events`. */
export interface ObjectEvent extends Reason {
  readonly type: 'Normal' | 'Warning';
  /** What was being done: CamelCase. */
  readonly action: string;
}

/**
 * A write to a child.
 *
 * @testonly
 */
export interface ChildWriteEvent {
  readonly owner: string;
  readonly type: ResourceType;
  readonly ref: ObjectRef;
  readonly action: 'created' | 'applied' | 'deleted';
  /** The first path that differed, of an apply. */
  readonly because?: string;
}

/** What to do after a reconcile. */
export interface ReconcileResult {
  /** `wait`: nothing until an event comes. `retry`: run again after the backoff. */
  readonly action: 'wait' | 'retry';
  /** Run again after this long at the latest, in milliseconds. */
  readonly requeueAfterMs?: number;
  /** What is wrong, for metrics and logs. */
  readonly failed?: Reason;
  /** What a function of the kind threw, for the log. */
  readonly thrown?: KindFunctionError;
  /** Run again when anything happens to one of these names. */
  readonly awaited?: readonly AwaitedName[];
}

/** The name of a child that cannot be written yet. */
export interface AwaitedName {
  readonly type: ResourceType;
  readonly ref: ObjectRef;
}

/** What a reconcile needs of the engine that executes a kind's effects. `effects/` implements it. */
export interface Effects {
  /**
   * Continues the effects of a phase.
   *
   * @throws ApiError, TransportError when the state, or something that an effect reads, cannot be read
   */
  reconcile(object: KubeObject, self: KindObject<AnyKind>, phase: EffectPhase): Promise<EffectsResult>;

  /**
   * What the effects of the phase `apply` have reported for the object as it is.
   *
   * @param observed - what `observe` says of the children that exist
   * @throws ApiError, TransportError when something that an effect reads cannot be read
   */
  reports(
    object: KubeObject,
    self: KindObject<AnyKind>,
    observed: Readonly<Record<string, unknown>>,
  ): Promise<EffectReports>;

  /**
   * Whether any effect was ever started for an object: then there may be something to undo.
   *
   * @throws ReconcileError `ErrStateMissing` when the object's status says so but its state is lost;
   * `ErrResourceExists` when its status says so but the state belongs to another object now; ApiError,
   * TransportError when the state cannot be read
   */
  hasStarted(object: KubeObject): Promise<boolean>;

  /**
   * Whether the object is being deleted with `--cascade=orphan`, so that its effects stay. Its own finalizers
   * show that only until the garbage collector has done its part, which may be before the next reconcile;
   * from then on, its state does.
   *
   * @throws ApiError, TransportError when the state cannot be read
   */
  isOrphaned(object: KubeObject): Promise<boolean>;

  /**
   * Lets the object's effects stay when it is deleted, by removing the owner from its state. A running effect
   * ends first, so that the state records everything that was done.
   *
   * @returns why the object cannot be deleted yet, if so
   * @throws ApiError, TransportError when the owner cannot be removed from the state
   */
  orphan(object: KubeObject): Promise<Readiness | undefined>;

  /**
   * Lets the object's state be deleted: everything to be undone has been, and the object's finalizer is
   * removed next.
   *
   * @throws ApiError, TransportError when the state cannot be released; whatever `assertMayRun` throws
   */
  releaseState(object: KubeObject): Promise<void>;

  /**
   * Records that a clean-up failed for another reason than the effects, for example because the finalizer
   * could not be removed.
   *
   * @returns after how many milliseconds to try again; undefined when it was refused as often as allowed:
   * then a person has to help
   */
  recordCleanupFailure(object: KubeObject, why: CleanupFailure): number | undefined;

  /** Records that a clean-up got as far as it could without a failure: earlier failures no longer count. */
  resetCleanupBackoff(object: KubeObject): void;

  /** Forgets an object that was deleted. */
  forget(object: KubeObject): void;
}

/** The state of an object's effects. */
export interface EffectsResult {
  /** Why something is left to do. */
  readonly readiness?: Readiness;
  /** Fields of the object's own status that the effects reported. */
  readonly status: Readonly<Record<string, unknown>>;
  readonly conditions: readonly OwnCondition[];
  /** Reconcile again after this long, in milliseconds. */
  readonly requeueAfterMs?: number;
  /**
   * Nothing has run in this process yet, and the object's status says that all effects had succeeded for this
   * generation: it counts as their reports until a run has ended.
   */
  readonly isFromStatus?: true;
}

/** What effects have reported for an object as it is. */
export interface EffectReports {
  /** By runs for the input that the effects have now. */
  readonly status: Readonly<Record<string, unknown>>;
  /** The conditions of those that have succeeded for it. */
  readonly conditions: readonly OwnCondition[];
  /** The effects of which no run has succeeded for their present input. */
  readonly pending: readonly PendingEffect[];
}

/** An effect that has not succeeded for an object as it is. */
export interface PendingEffect {
  readonly name: string;
  /** The status fields that it has still to report; undefined when it may report any. */
  readonly fields: readonly string[] | undefined;
  /** The condition that it has still to report, if any. */
  readonly condition: string | undefined;
  /** Whether a run has ever succeeded. */
  readonly hasSucceeded: boolean;
}

/**
 * Why a clean-up failed. `refused`: the server rejected it. `unavailable`: the server could not answer, which
 * says nothing about the object.
 */
export type CleanupFailure = 'refused' | 'unavailable';

/** Executes effects for an operator. */
export interface EffectEngine {
  /** The plans that it can execute. */
  readonly plans: readonly string[];
  /** How long running steps may take to end after a stop, in milliseconds. */
  readonly drainMs: number;
  /** @param stop aborts at an orderly stop */
  start(stop: AbortSignal): RunningEffects;
}

/** A started engine. */
export interface RunningEffects {
  of(kind: AnyKind, host: EffectHost): Effects;
  /** Resolves when no run is running. */
  waitUntilIdle(): Promise<void>;
  /** How many runs are running. */
  readonly size: number;
}

/** What the engine receives to execute a kind's effects. */
interface EffectHost {
  readonly client: ApiClient;
  readonly record: (regarding: KubeObject, event: ObjectEvent) => void;
  readonly enqueue: (object: KubeObject) => void;
  readonly getCached: (object: KubeObject) => KubeObject | undefined;
  readonly assertMayRun: () => void;
  /** Logs what a plan threw unexpectedly. @default nothing is logged */
  readonly onPlanError?: (object: KubeObject, error: KindFunctionError) => void;
}
