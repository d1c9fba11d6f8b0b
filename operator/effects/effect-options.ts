import type { AnyKind } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ApiClient } from '../client/api-client';
import type { ReconcileContext } from '../reconcile/context';
import { systemClock } from '../process/clock';
import { StartupError } from '../process/lifecycle';
import { EffectDesk } from './effect-reconciler';
import { EffectReads, type ReadLimits } from './effect-reads';
import { DEFAULT_ATTEMPT_BACKOFF, type AttemptBackoff, type EffectStore } from './effect-state';
import type { EffectRuns } from './effect-runs';
import type { PlanRunner } from './plan-runner';

/** What carries out what kinds do outside the Kubernetes API. */
export interface EffectOptions {
  /** By the names that kinds give them. */
  readonly plans: Readonly<Record<string, PlanRunner>>;
  /** How many runs at once, of all kinds together. */
  readonly limit: number;
  readonly reads: ReadLimits;
  /**
   * Where the state of a kind's effects is kept. It writes by a client of its own, whoever leads: what the step under way gave must not be lost
   * with the Lease, and each write bears the version that was read.
   */
  readonly storeOf: (kind: AnyKind) => EffectStore;
  /** How long the steps under way may take to end after a stop, in milliseconds. */
  readonly drainMs: number;
  /** Delays between the attempts at a run, and at a clean-up. @default 10 s, doubled up to 15 min */
  readonly backoff?: AttemptBackoff;
}

/** Reconciling only the children of such a kind would call ready what was never done, and let go what was never undone. */
export function refuseUnknownPlans(kinds: readonly AnyKind[], effects: EffectOptions | undefined): void {
  const known = Object.keys(effects?.plans ?? {});
  const needed = kinds.flatMap((kind) =>
    kind.effects.some(({ plan }) => !known.includes(plan)) ? [kind.crdName] : [],
  );
  if (needed.length === 0) return;
  throw new StartupError(
    `${needed.join(', ')}: these kinds act outside the Kubernetes API, which this operator cannot do; ` +
      'leave them out of its kinds, or start a provisioner for them',
  );
}

/** What the desks of all kinds share. */
export interface DeskParts {
  /** Undefined: nothing is carried out. */
  readonly effects: EffectOptions | undefined;
  /** Aborts at an orderly stop. */
  readonly stop: AbortSignal;
  readonly client: ApiClient;
  readonly runs: EffectRuns;
  readonly record: ReconcileContext['record'];
  readonly wake: (object: KubeObject) => void;
  readonly current: (object: KubeObject) => KubeObject | undefined;
  readonly assertMayRun: () => void;
}

/** The desk of a kind, if it has effects. */
export function deskOf(kind: AnyKind, parts: DeskParts): Pick<ReconcileContext, 'effects'> {
  const { client, effects, ...rest } = parts;
  if (kind.effects.length === 0 || effects === undefined) return {};
  const reads = new EffectReads(client, effects.reads);
  const backoff = effects.backoff ?? DEFAULT_ATTEMPT_BACKOFF;
  const store = effects.storeOf(kind);
  const { plans } = effects;
  return { effects: new EffectDesk({ kind, reads, store, backoff, plans, clock: systemClock, ...rest }) };
}
