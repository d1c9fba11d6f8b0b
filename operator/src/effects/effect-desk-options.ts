import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { OwnCondition, Verdict } from '../reconcile/conditions';
import type { ObjectEvent } from '../reconcile/context';
import type { Clock } from '../runtime/clock';
import type { AttemptBackoff } from './effect-record';
import type { EffectReads } from './effect-reads';
import type { EffectRuns } from './effect-runs';
import type { EffectStore } from './effect-store';
import type { PlanRunner, StatusFields } from './plan-runner';

/** What a desk works with. */
export interface EffectDeskOptions {
  readonly kind: AnyKind;
  /** By the plan's name. */
  readonly plans: Readonly<Record<string, PlanRunner>>;
  readonly store: EffectStore;
  readonly reads: EffectReads;
  readonly runs: EffectRuns;
  /** Delays between the attempts at a run, and at a clean-up. */
  readonly backoff: AttemptBackoff;
  readonly clock: Clock;
  readonly record: (regarding: KubeObject, event: ObjectEvent) => void;
  /** Aborts at an orderly stop. */
  readonly stop: AbortSignal;
  /** Has an object reconciled: its run reported something, or ended. */
  readonly wake: (object: KubeObject) => void;
  /** What stands under an object's name, as the cache has it: another one too, with another UID. Undefined: nothing. */
  readonly current: (object: KubeObject) => KubeObject | undefined;
  /** Throws when this process must start nothing: it does not lead any more. */
  readonly assertMayRun: () => void;
}

/** How the effects of an object stand. */
export interface EffectsFound {
  /** Nothing is left to do, for now. */
  readonly done: boolean;
  /** Why not. */
  readonly verdict?: Verdict;
  /** Fields of the object's own status that the effects gave. */
  readonly status: StatusFields;
  readonly conditions: readonly OwnCondition[];
  /** Look again after so long, in milliseconds. */
  readonly afterMs?: number;
}
