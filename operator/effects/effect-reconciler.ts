import type { EffectPhase, EffectRun } from '../../constructs/kind/effects';
import { FORCE_REMOVE_ANNOTATION, RECONCILE_AT_ANNOTATION } from '../../constructs/kube/envelope';
import type { AnyKind, CommonStatus, KindObject } from '../../constructs/kind/kind';
import type { KindFunctionError } from '../../constructs/kube/function-error';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { resolveReads } from '../../constructs/kind/reads';
import { withDefaults } from '../../constructs/kind/render';
import type { Readiness } from '../status/conditions';
import { isPaused, hasOrphanFinalizer } from '../apply/ownership';
import { uidOf } from '../client/api-client';
import type { Clock } from '../process/clock';
import type { CleanupFailure, EffectReports, Effects, EffectsResult, ObjectEvent } from '../reconcile/context';
import type { EffectInputReader } from './effect-input-reader';
import { planErrorOf, versionOf, EffectInputs, type AnyEffect, type BuiltRun } from './effect-inputs';
import { lastReports, presentReports, withLastReports } from './effect-reports';
import { CleanupBackoff, EffectStateCache, type CachedEffectState } from './effect-state-cache';
import { attemptScope, decideEffect } from './effect-state';
import type { AttemptBackoff, EffectRecord, EffectStore } from './effect-state';
import { runEffect, type EffectRunQueue, type RunEffectOptions, type RunRequest, type RunView } from './effect-runs';
import { PlanError, RETRY_AFTER_MS, RunInterruptedError, type PlanRunner, type StatusFields } from './plan-runner';
import {
  evaluationOf,
  ownConditions,
  progressReason,
  previousReadiness,
  type EffectEvaluation,
} from './effect-readiness';

/** How often Secrets and files are read again, since no event reports their changes, in milliseconds. */
const RESYNC_PERIOD_MS = 300_000;

/** Options of `EffectReconciler`. */
export interface EffectReconcilerOptions {
  readonly kind: AnyKind;
  /** By the plan's name. */
  readonly plans: Readonly<Record<string, PlanRunner>>;
  readonly store: EffectStore;
  readonly reads: EffectInputReader;
  readonly runs: EffectRunQueue;
  /** Delays between the attempts at a run, and at a clean-up. */
  readonly backoff: AttemptBackoff;
  readonly clock: Clock;
  readonly record: (regarding: KubeObject, event: ObjectEvent) => void;
  /** Aborts at an orderly stop. */
  readonly stop: AbortSignal;
  /** Enqueues an object whose run reported something, or ended. */
  readonly enqueue: (object: KubeObject) => void;
  /** The cached object with an object's name, possibly with another UID; undefined when there is none. */
  readonly getCached: (object: KubeObject) => KubeObject | undefined;
  /** Throws when this process must start nothing, because it does not lead any more. */
  readonly assertMayRun: () => void;
  /** Called with what a plan threw unexpectedly. @default nothing is logged */
  readonly onPlanError?: (object: KubeObject, error: KindFunctionError) => void;
}

/**
 * Reconciles the effects of a kind's objects. It never waits for a run: it returns the object's state and
 * starts what is due, and the object is reconciled again when the run reports or ends.
 *
 * Guarantees: those of {@link Effect}. A run's record is stored before the run begins and when it ends; a
 * process that is killed in between leaves a record that counts as one attempt. A queued run begins only if
 * its object is still as it was when the run was requested; otherwise nothing is stored or done, and the
 * object is reconciled again.
 */
export class EffectReconciler implements Effects {
  private readonly cleanupBackoff: CleanupBackoff;
  private readonly states: EffectStateCache;
  private readonly inputs: EffectInputs;

  constructor(private readonly options: EffectReconcilerOptions) {
    this.cleanupBackoff = new CleanupBackoff(options);
    this.states = new EffectStateCache(options.store);
    this.inputs = new EffectInputs(options.kind, options.reads);
  }

  async hasStarted(object: KubeObject): Promise<boolean> {
    const { attempts = 0 } = (object.status ?? {}) as { readonly attempts?: number };
    try {
      if (Object.keys((await this.states.of(object)).state.records).length > 0) return true;
    } catch (error) {
      // No effect was started for an object whose Secret could never be created because another object's
      // Secret has its name.
      if (attempts === 0 && error instanceof PlanError && error.reason === 'ErrResourceExists') return false;
      throw error;
    }
    // A lost state does not matter if there is nothing to undo.
    const { kind } = this.options;
    if (this.inputs.select(withDefaults(kind, object), 'remove').length === 0) return false;
    if (attempts === 0) return false;
    // A restored Secret must be read.
    this.states.invalidate(object);
    throw new PlanError(
      'ErrStateMissing',
      `The state of ${object.kind} ${object.metadata.name} is gone, so that nobody knows what is to be removed. Restore it, or ` +
        `remove by hand what its effects made, and set the annotation ${FORCE_REMOVE_ANNOTATION}: "true".`,
      { isTerminal: true },
    );
  }

  recordCleanupFailure(object: KubeObject, why: CleanupFailure): number | undefined {
    return this.cleanupBackoff.recordFailure(
      uidOf(object),
      object.metadata.annotations?.[RECONCILE_AT_ANNOTATION] ?? '',
      why,
    );
  }

  resetCleanupBackoff(object: KubeObject): void {
    this.cleanupBackoff.forget(uidOf(object));
  }

  async releaseState(object: KubeObject): Promise<void> {
    // The store does not check leadership, but a process that does not lead cannot remove the object's
    // finalizer either.
    this.options.assertMayRun();
    await this.options.store.release(object);
  }

  async isOrphaned(object: KubeObject): Promise<boolean> {
    return hasOrphanFinalizer(object) || this.options.store.isOrphaned(object);
  }

  async orphan(object: KubeObject): Promise<Readiness | undefined> {
    const { runs, store } = this.options;
    runs.cancelWaiting(uidOf(object));
    const run = runs.of(uidOf(object));
    if (run !== undefined) {
      const message = `It goes once ${run.effect} has ended, and what it did stays.`;
      return { state: 'progressing', reason: 'Orphaning', message };
    }
    const memory = await this.states.of(object);
    if (memory.isDirty) await this.states.save(object, memory);
    const kept = await store.orphan(object);
    const what = kept.length === 0 ? '' : ` So do ${kept.join(' and ')}.`;
    const message = `It was deleted with --cascade=orphan: nothing is taken away, what it did stays.${what}`;
    this.options.record(object, { type: 'Normal', action: 'Delete', reason: 'Orphaned', message });
    return undefined;
  }

  forget(object: KubeObject): void {
    this.options.runs.cancelWaiting(uidOf(object));
    this.states.forget(object);
    this.cleanupBackoff.forget(uidOf(object));
  }

  async reconcile(object: KubeObject, found: KindObject<AnyKind>, phase: EffectPhase): Promise<EffectsResult> {
    const memory = await this.states.of(object);
    const self = withLastReports(this.options.kind, found, memory);
    const effects = this.inputs.select(self, phase);
    const under = this.runOf(object, effects);
    const { generation } = object.metadata;
    const last = memory.lastIdleResult;
    const version = versionOf(self);
    const isOutdated = last?.isFromStatus === true && last.version !== version;
    const lastIdleResult = last?.generation === generation && !isOutdated ? last : undefined;
    if (under !== undefined) {
      const repeats = effects.some(({ name, everySeconds }) => name === under.effect && everySeconds !== undefined);
      if (repeats && lastIdleResult !== undefined) return lastIdleResult;
      return this.inProgress(memory, effects, under);
    }
    if (memory.isDirty) await this.states.save(object, memory);
    await this.options.store.syncOwnerReference(object);
    const settle = (result: EffectsResult): EffectsResult => {
      memory.lastIdleResult = { ...result, generation, version };
      return result;
    };
    let requeueAfterMs: number | undefined = effects.length === 0 ? undefined : RESYNC_PERIOD_MS;
    for (const effect of effects) {
      const step = await this.evaluate(object, self, memory, effect);
      if (step.repeated === true && lastIdleResult !== undefined) return lastIdleResult;
      const stood = step.begun === true && effect.everySeconds !== undefined ? previousReadiness(object) : undefined;
      if (stood !== undefined && memory.lastIdleResult === undefined) {
        const { readiness } = stood;
        return settle({
          ...(readiness === undefined ? { isFromStatus: true } : { readiness }),
          status: {},
          ...keptConditions(this.options.kind, object),
        });
      }
      if (step.readiness !== undefined) {
        const result = this.incomplete(memory, effects, effect, step.readiness, step.requeueAfterMs);
        return step.begun === true ? result : settle(result);
      }
      if (step.requeueAfterMs !== undefined) requeueAfterMs = Math.min(requeueAfterMs ?? Infinity, step.requeueAfterMs);
    }
    return settle({
      status: this.statusOf(memory, effects),
      conditions: ownConditions(effects, memory.state.records),
      ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }),
    });
  }

  async reports(object: KubeObject, self: KindObject<AnyKind>, observed: StatusFields): Promise<EffectReports> {
    const { kind, runs } = this.options;
    const memory = await this.states.of(object);
    return presentReports({ kind, inputs: this.inputs, memory, run: runs.of(uidOf(object)), observed }, self);
  }

  /**
   * The run of an object, if any. A queued run that is no longer wanted is dropped, so that it delays
   * nothing.
   */
  private runOf(object: KubeObject, effects: readonly AnyEffect[]): RunView | undefined {
    const { runs } = this.options;
    const run = runs.of(uidOf(object));
    if (run?.state !== 'waiting') return run;
    const isWanted = run.generation === object.metadata.generation && effects.some(({ name }) => name === run.effect);
    if (isWanted) return run;
    runs.cancelWaiting(uidOf(object));
    return undefined;
  }

  /** Checks an effect and starts it if it is due. @returns a readiness unless the effect is satisfied */
  private async evaluate(
    object: KubeObject,
    self: KindObject<AnyKind>,
    memory: CachedEffectState,
    effect: AnyEffect,
  ): Promise<EffectEvaluation> {
    const { backoff, clock, kind } = this.options;
    let built: BuiltRun;
    try {
      built = await this.inputs.build(self, memory, effect);
    } catch (thrown) {
      const error = planErrorOf(thrown);
      if (error === undefined) throw thrown;
      const { reason, message } = error;
      const state = error.details.isTerminal === true ? 'stalled' : 'failing';
      const action = effect.phase === 'apply' ? 'Provision' : 'Remove';
      if (memory.lastEventMessage !== message) {
        this.options.record(object, { type: 'Warning', action, reason, message });
      }
      memory.lastEventMessage = message;
      return { readiness: { state, reason, message }, requeueAfterMs: RETRY_AFTER_MS };
    }
    const { run, input, seen, files } = built;
    const everyMs = run.everySeconds === undefined ? undefined : run.everySeconds * 1000;
    const wanted = { input, countedFor: attemptScope(object, input, seen), maxAttempts: run.maxAttempts, backoff };
    const record = memory.state.records[effect.name];
    const next = decideEffect(record, {
      ...wanted,
      ...(everyMs === undefined ? {} : { everyMs }),
      nowMs: clock.wallMs(),
    });
    if (next.what === 'run') {
      const superseded = kind.effects
        .filter(({ phase, when }) => phase === effect.phase && when?.(self as never) === false)
        .map(({ name }) => name);
      const begun = { ...wanted, superseded, reports: effect.reports };
      return this.startRun(self, memory, run, begun, next.attempt);
    }
    const found = evaluationOf(next, run, record);
    // No event reports a change of what was read.
    const readsAnything = (): boolean => files.length > 0 || resolveReads(kind.reads, self as never).length > 0;
    const mustLook = next.what === 'exhausted' && found.requeueAfterMs === undefined && readsAnything();
    return mustLook ? { ...found, requeueAfterMs: RESYNC_PERIOD_MS } : found;
  }

  private startRun(
    object: KindObject<AnyKind>,
    memory: CachedEffectState,
    run: EffectRun,
    begun: Pick<EffectRecord, 'input' | 'countedFor'> & Pick<RunEffectOptions, 'superseded' | 'reports'>,
    attempt: number,
  ): EffectEvaluation {
    const { runs, stop, getCached: current } = this.options;
    const repeated = run.everySeconds !== undefined && memory.state.records[run.name]?.input === begun.input;
    if (stop.aborted)
      return { readiness: { state: 'progressing', reason: 'Stopping', message: 'The operator is stopping.' } };
    const job: RunRequest['job'] = (report) => {
      const now = current(object);
      if (!isStillDesired(object, now, run.phase)) return Promise.resolve();
      return runEffect({
        ...this.options,
        // Of the same generation, so that the spec is the same.
        ...{ object: { ...now, spec: object.spec as unknown }, run, attempt, report },
        state: () => memory.state,
        assertMayRun: () => {
          this.options.assertMayRun();
          if (run.phase === 'remove') assertStillRemoving(current(object));
        },
        save: async (state) => {
          memory.state = state;
          memory.isDirty = true;
          await this.states.save(now, memory);
        },
        assertFits: (state) => this.options.store.assertFits(now, state),
        begun: { input: begun.input, countedFor: begun.countedFor },
        ...{ superseded: begun.superseded, reports: begun.reports },
        onStatus: (status) => {
          memory.status = { ...memory.status, ...status };
        },
      });
    };
    const onChange = (): void => this.options.enqueue(object);
    const { generation } = object.metadata;
    runs.start(uidOf(object), { effect: run.name, generation, job, isProbe: run.everySeconds !== undefined, onChange });
    const waits = runs.of(uidOf(object))?.state === 'waiting';
    const message = waits ? waitingFor(run.name) : `${run.name} begins, attempt ${attempt} of ${run.maxAttempts}.`;
    return { readiness: { state: 'progressing', reason: progressReason(run.phase), message }, begun: true, repeated };
  }

  private inProgress(
    memory: CachedEffectState,
    effects: readonly AnyEffect[],
    { effect: name, state, progress }: RunView,
  ): EffectsResult {
    const effect = effects.find((candidate) => candidate.name === name);
    const message = progress?.message ?? (state === 'waiting' ? waitingFor(name) : `${name} begins.`);
    const readiness: Readiness = { state: 'progressing', reason: progressReason(effect?.phase ?? 'apply'), message };
    return {
      ...this.incomplete(memory, effects, effect, readiness, undefined),
      status: { ...this.statusOf(memory, effects), ...progress?.status },
    };
  }

  private statusOf(memory: CachedEffectState, effects: readonly AnyEffect[]): StatusFields {
    return lastReports(this.options.kind, memory, effects);
  }

  private incomplete(
    memory: CachedEffectState,
    effects: readonly AnyEffect[],
    effect: AnyEffect | undefined,
    readiness: Readiness,
    requeueAfterMs: number | undefined,
  ): EffectsResult {
    return {
      readiness,
      status: this.statusOf(memory, effects),
      conditions: ownConditions(effects, memory.state.records, { name: effect?.name, readiness }),
      ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }),
    };
  }
}

/**
 * Whether a run may still begin that was requested when the object was `then`: the object may have changed
 * while the run was queued.
 */
function isStillDesired(then: KubeObject, now: KubeObject | undefined, phase: EffectPhase): now is KubeObject {
  if (now === undefined) return false;
  const { uid, generation, deletionTimestamp } = now.metadata;
  if (uid !== then.metadata.uid || generation !== then.metadata.generation || isPaused(now)) return false;
  return phase === 'remove' ? !hasOrphanFinalizer(now) : deletionTimestamp === undefined;
}

/** @throws RunInterruptedError when a person has stopped the removal of the object's effects */
function assertStillRemoving(now: KubeObject | undefined): void {
  if (now === undefined || !(isPaused(now) || hasOrphanFinalizer(now))) return;
  throw new RunInterruptedError('The removal was called off: nothing more is taken away.');
}

const waitingFor = (name: string): string => `Waiting to run ${name}: other objects go first.`;

/** The kind's own conditions as they are. */
function keptConditions(kind: AnyKind, { status }: KubeObject): Pick<EffectsResult, 'conditions'> {
  const { conditions = [] } = (status ?? {}) as CommonStatus;
  return { conditions: conditions.filter(({ type }) => kind.conditionTypes.some((own) => own.type === type)) };
}
