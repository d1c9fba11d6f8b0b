import type { EffectRun } from '../../constructs/kind/effects';
import type { Reason } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ObjectKeyRef } from '../../constructs/kind/reads';
import { ReconcileError } from '../reconcile/problems';

/**
 * Executes one plan.
 *
 * @throws PlanError with the reason for `Ready`; RunInterruptedError when it was stopped between steps
 */
export type PlanRunner = (run: PlanRun) => Promise<PlanResult>;

/** What a plan is executed with. */
export interface PlanRun {
  /** The object as it was when the run began, its spec with defaults: `object as KindObject<typeof Bucket>`. */
  readonly object: KubeObject;
  readonly run: EffectRun;
  /** 1 for the first run of this input. */
  readonly attempt: number;
  readonly values: RunValues;
  /** One value of a Secret. @throws PlanError when it does not exist, or its namespace may not be read */
  readonly secret: (ref: ObjectKeyRef) => Promise<string>;
  /**
   * The text of a file below the configured directory.
   *
   * @throws PlanError when there is no such file, or it is elsewhere
   */
  readonly file: (path: string) => Promise<string>;
  /** Aborts at an orderly stop: the running step ends, no other starts. */
  readonly stop: AbortSignal;
  /** Aborts when the run has taken as long as it may: the running step is aborted. */
  readonly timeout: AbortSignal;
  /** To be called before each step. @throws RunInterruptedError when this process must start nothing more */
  readonly assertMayContinue: () => void;
  readonly report: (progress: RunProgress) => void;
  /** Records a Warning event about the object. */
  readonly warn: (warning: Reason) => void;
}

/**
 * Values that outlive a run, by name: outputs of tasks, keys, tokens. All of them are treated as secret. Store what a
 * removal will need before that exists: a process may be killed right after it made something.
 */
export interface RunValues {
  readonly all: () => Readonly<Record<string, string>>;
  /**
   * Sets some values, and removes those that are undefined.
   *
   * Guarantees: when it resolves, they have been stored.
   *
   * @throws ApiError, TransportError, PlanError when they cannot be stored
   */
  readonly put: (values: Readonly<Record<string, string | undefined>>) => Promise<void>;
  /**
   * To be called before the first step, with everything that `put` may receive until the end: a run whose
   * values cannot be stored must not begin.
   *
   * @throws PlanError `ErrStateTooLarge` when they could not be stored
   */
  readonly assertFit: (values: Readonly<Record<string, string | undefined>>) => Promise<void>;
}

/** The progress of a run. */
export interface RunProgress {
  /** For people, without secrets. */
  readonly message: string;
  /** Fields of the object's own status that changed. @default none */
  readonly status?: StatusFields;
  /** Worth an event: the beginning of a step, not its every line. @default false */
  readonly event?: boolean;
}

/** The result of a successful run. */
export interface PlanResult {
  readonly message: string;
  /** Fields of the object's own status. @default none */
  readonly status?: StatusFields;
}

/** Fields of a status. */
export type StatusFields = Readonly<Record<string, unknown>>;

/**
 * How soon an object is reconciled again after a PlanError that came from no run, in milliseconds: the remedy
 * may be a Secret or a file, whose changes no event reports.
 */
export const RETRY_AFTER_MS = 30_000;

/** A run failed, or cannot begin. */
export class PlanError extends ReconcileError {
  override readonly name = 'PlanError';

  constructor(
    reason: string,
    /** For people: what, where, why, what to do. Without secrets. */
    message: string,
    readonly details: {
      /**
       * Another attempt would end the same: the object is `Stalled`, and the effect runs again, one with
       * `everySeconds` too, only when the spec, something the kind reads, or the annotation
       * `kindred.dev/reconcile-at` changes; a probe, whose state is not stored, also after a restart.
       * @default false
       */
      readonly isTerminal?: boolean;
      readonly status?: StatusFields;
      readonly cause?: unknown;
    } = {},
  ) {
    const { isTerminal = false, cause } = details;
    super(reason, message, { isTerminal, requeueAfterMs: RETRY_AFTER_MS, ...(cause === undefined ? {} : { cause }) });
  }
}

/** A run was stopped between two steps, in an orderly way. It does not count as an attempt. */
export class RunInterruptedError extends Error {
  override readonly name = 'RunInterruptedError';
}
