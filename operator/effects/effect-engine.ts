import type { AnyKind } from '../../constructs/kind/kind';
import type { EffectEngine } from '../reconcile/context';
import { systemClock } from '../process/clock';
import { EffectReconciler } from './effect-reconciler';
import { EffectInputReader, type ReadPolicy } from './effect-input-reader';
import { DEFAULT_ATTEMPT_BACKOFF, type AttemptBackoff, type EffectStore } from './effect-state';
import { EffectRunQueue } from './effect-runs';
import type { PlanRunner } from './plan-runner';

/** Options of `effectEngine`. */
export interface EffectEngineOptions {
  /** The runner of each plan, by the name that kinds give the plan. */
  readonly plans: Readonly<Record<string, PlanRunner>>;
  /** How many effects run at once, of all kinds together. */
  readonly limit: number;
  readonly reads: ReadPolicy;
  /**
   * Where the state of a kind's effects is stored. It writes with its own client, without checking
   * leadership: the result of the running step must not be lost with the Lease, and each write carries the
   * version that was read.
   */
  readonly storeOf: (kind: AnyKind) => EffectStore;
  /** How long running steps may take to end after a stop, in milliseconds. */
  readonly drainMs: number;
  /** Delays between the attempts at a run, and at a clean-up. @default 10 s, doubled up to 15 min */
  readonly backoff?: AttemptBackoff;
}

/** Creates the engine that executes effects, for the `effects` option of an operator. */
export function effectEngine(options: EffectEngineOptions): EffectEngine {
  const { plans, limit, drainMs, storeOf, reads: limits, backoff = DEFAULT_ATTEMPT_BACKOFF } = options;
  return {
    plans: Object.keys(plans),
    drainMs,
    start: (stop) => {
      const runs = new EffectRunQueue({ limit, stop });
      return {
        of: (kind, { client, ...host }) =>
          new EffectReconciler({
            ...{ kind, plans, runs, backoff, stop, clock: systemClock, store: storeOf(kind) },
            reads: new EffectInputReader(client, limits),
            ...host,
          }),
        waitUntilIdle: () => runs.waitUntilIdle(),
        get size() {
          return runs.size;
        },
      };
    },
  };
}
