import { effectRun, effectsOf } from '../../../constructs/core/effects';
import type { Effect, EffectPhase, EffectRun } from '../../../constructs/core/effects';
import { FORCE_REMOVE_ANNOTATION, RECONCILE_AT_ANNOTATION } from '../../../constructs/core/envelope';
import type { AnyKind, KindObject } from '../../../constructs/core/kind';
import type { KubeObject } from '../../../constructs/core/kube-object';
import type { Verdict } from '../reconcile/conditions';
import type { ObjectEvent } from '../reconcile/context';
import type { Clock } from '../runtime/clock';
import { countedFor, due, inputHash } from './effect-record';
import type { AttemptBackoff, Due, EffectRecord } from './effect-record';
import type { EffectReads } from './effect-reads';
import type { EffectRuns, RunRequest } from './effect-runs';
import type { EffectState, EffectStore } from './effect-store';
import { PlanError } from './plan-runner';
import type { PlanRunner, StatusFields } from './plan-runner';
import { runEffect } from './run-effect';

/** What a {@link EffectDesk} works with. */
export interface EffectDeskOptions {
  readonly kind: AnyKind;
  /** By the plan's name. */
  readonly plans: Readonly<Record<string, PlanRunner>>;
  readonly store: EffectStore;
  readonly reads: EffectReads;
  readonly runs: EffectRuns;
  readonly backoff: AttemptBackoff;
  readonly clock: Clock;
  readonly record: (regarding: KubeObject, event: ObjectEvent) => void;
  /** Aborts at an orderly stop. */
  readonly stop: AbortSignal;
  /** Has an object reconciled: its run reported something, or ended. */
  readonly wake: (object: KubeObject) => void;
  /** Throws when this process must start nothing: it does not lead any more. */
  readonly assertMayRun: () => void;
}

/** A condition of a kind's own, as its effects stand. */
export interface EffectCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** How the effects of an object stand. */
export interface EffectsFound {
  /** Nothing is left to do, for now. */
  readonly done: boolean;
  /** Why not. */
  readonly verdict?: Verdict;
  /** Fields of the object's own status that the effects gave. */
  readonly status: StatusFields;
  readonly conditions: readonly EffectCondition[];
  /** Look again after so long, in milliseconds. */
  readonly afterMs?: number;
}

type AnyEffect = Effect<KindObject<AnyKind>>;

/** How often the clean-up may fail in a row, for reasons other than the removal itself. */
const MAX_CLEANUP_FAILURES = 5;

/** How often Secrets and files are looked at, since nothing tells of their changes, in milliseconds. */
const LOOK_AGAIN_MS = 300_000;

/** What came of looking at one effect: a verdict unless it is satisfied. */
interface Considered {
  readonly verdict?: Verdict;
  readonly afterMs?: number;
  /** A run was started. */
  readonly begun?: boolean;
  /** It looks again at what is known already. */
  readonly repeated?: boolean;
}

/** What is remembered of an object while the process lives. */
interface Memory {
  state: EffectState;
  status: StatusFields;
  /** What could not be stored yet. */
  unsaved: boolean;
  /** How the object stood between runs. A probe that is repeated is no news until it has ended. */
  settled?: EffectsFound;
}

/**
 * Where the effects of a kind's objects are asked for. It never waits for a run: it says how the object stands, starts what is due, and the
 * object is reconciled again when the run reports or ends.
 *
 * Guarantees: those of {@link Effect}. A run's record is stored before the run begins and when it ends; a process that was killed in
 * between leaves a record that counts as one attempt.
 */
export class EffectDesk {
  private readonly cleanupFailures = new Map<string, number>();
  private readonly memories = new Map<string, Memory>();

  constructor(private readonly options: EffectDeskOptions) {}

  /**
   * Whether anything was ever begun for an object: then something may have to be taken away.
   *
   * @throws PlanError `ErrStateMissing` when its status says so, but nothing is known of it any more
   */
  async wasBegun(object: KubeObject): Promise<boolean> {
    if (Object.keys((await this.memory(object)).state.records).length > 0) return true;
    const { attempts } = (object.status ?? {}) as { readonly attempts?: number };
    if (attempts === undefined || attempts === 0) return false;
    throw new PlanError(
      'ErrStateMissing',
      `The state of ${object.kind} ${object.metadata.name} is gone, so that nobody knows what is to be taken away. Restore its Secret, or ` +
        `clean the machines up by hand and set the annotation ${FORCE_REMOVE_ANNOTATION}: "true".`,
      { hopeless: true },
    );
  }

  /**
   * The clean-up after an object failed otherwise: its finalizer could not be dropped, say.
   *
   * @returns whether that was as often as it may: then a person must look
   */
  cleanupFailed(object: KubeObject): boolean {
    const key = `${uidOf(object)} ${object.metadata.annotations?.[RECONCILE_AT_ANNOTATION] ?? ''}`;
    const times = (this.cleanupFailures.get(key) ?? 0) + 1;
    this.cleanupFailures.set(key, times);
    return times >= MAX_CLEANUP_FAILURES;
  }

  /** The object is gone. */
  forget(uid: string): void {
    if (this.options.runs.of(uid) === undefined) this.memories.delete(uid);
  }

  /**
   * Goes on with the effects of a phase.
   *
   * @throws ApiError, TransportError when the state or something that is read cannot be had
   */
  async advance(object: KubeObject, self: KindObject<AnyKind>, phase: EffectPhase): Promise<EffectsFound> {
    const uid = uidOf(object);
    const memory = await this.memory(object);
    const effects = effectsOf(this.options.kind.effects, self, phase);
    const under = this.options.runs.of(uid);
    if (under !== undefined) {
      const repeats = effects.some(({ name, everySeconds }) => name === under.effect && everySeconds !== undefined);
      if (repeats && memory.settled !== undefined) return memory.settled;
      return this.underWay(memory, effects, under.effect, under.progress);
    }
    if (memory.unsaved) await this.save(object, memory);
    let afterMs: number | undefined = effects.length === 0 ? undefined : LOOK_AGAIN_MS;
    for (const effect of effects) {
      const step = await this.consider(object, self, memory, effect);
      if (step.repeated === true && memory.settled !== undefined) return memory.settled;
      if (step.verdict !== undefined) {
        const found = this.notDone(memory, effects, effect, step.verdict, step.afterMs);
        if (step.begun !== true) memory.settled = found;
        return found;
      }
      if (step.afterMs !== undefined) afterMs = Math.min(afterMs ?? Infinity, step.afterMs);
    }
    memory.settled = {
      done: true,
      status: this.statusOf(memory, effects),
      conditions: this.conditions(memory, effects, undefined),
      ...(afterMs === undefined ? {} : { afterMs }),
    };
    return memory.settled;
  }

  /** @returns a verdict unless the effect is satisfied */
  private async consider(
    object: KubeObject,
    self: KindObject<AnyKind>,
    memory: Memory,
    effect: AnyEffect,
  ): Promise<Considered> {
    const { backoff, clock, reads, kind } = this.options;
    let run: EffectRun;
    try {
      // A removal needs nothing that may be gone by now: what it needs stands in the state.
      const isRemoval = effect.phase === 'remove';
      const reader = await reads.reader(isRemoval ? [] : kind.reads, self as never, effect.files?.(self) ?? []);
      run = effectRun(effect, self, reader);
    } catch (error) {
      if (!(error instanceof PlanError)) throw error;
      const { reason, message } = error;
      const state = error.details.hopeless === true ? 'stalled' : 'failing';
      return { verdict: { state, reason, message }, afterMs: 30_000 };
    }
    const input = inputHash(run);
    const everyMs = run.everySeconds === undefined ? undefined : run.everySeconds * 1000;
    const wanted = { input, countedFor: countedFor(object, input), maxAttempts: run.maxAttempts, backoff };
    const record = memory.state.records[effect.name];
    const next = due(record, { ...wanted, ...(everyMs === undefined ? {} : { everyMs }), nowMs: clock.wallMs() });
    if (next.what === 'run') return this.begin(object, memory, run, wanted, next.attempt);
    return judge(next, run, record);
  }

  private begin(
    object: KubeObject,
    memory: Memory,
    run: EffectRun,
    { input, countedFor: counted }: { readonly input: string; readonly countedFor: string },
    attempt: number,
  ): Considered {
    const { runs, stop } = this.options;
    const repeated = run.everySeconds !== undefined && memory.state.records[run.name]?.input === input;
    if (stop.aborted)
      return { verdict: { state: 'progressing', reason: 'Stopping', message: 'The operator is stopping.' } };
    const job: RunRequest['job'] = (report) =>
      runEffect({
        ...this.options,
        ...{ object, run, attempt, report },
        state: () => memory.state,
        save: async (state) => {
          memory.state = state;
          memory.unsaved = true;
          await this.save(object, memory);
        },
        begun: { input, countedFor: counted },
        learn: (status) => {
          memory.status = { ...memory.status, ...status };
        },
      });
    runs.start(uidOf(object), { effect: run.name, job, onChange: () => this.options.wake(object) });
    const message = `${run.name} begins, attempt ${attempt} of ${run.maxAttempts}.`;
    return { verdict: { state: 'progressing', reason: reasonOf(run.phase), message }, begun: true, repeated };
  }

  private async save(object: KubeObject, memory: Memory): Promise<void> {
    await this.options.store.save(object, memory.state);
    memory.unsaved = false;
  }

  private async memory(object: KubeObject): Promise<Memory> {
    const uid = uidOf(object);
    const known = this.memories.get(uid);
    if (known !== undefined) return known;
    const memory: Memory = { state: await this.options.store.load(object), status: {}, unsaved: false };
    this.memories.set(uid, memory);
    return memory;
  }

  private underWay(
    memory: Memory,
    effects: readonly AnyEffect[],
    name: string,
    progress: { readonly message: string; readonly status?: StatusFields } | undefined,
  ): EffectsFound {
    const effect = effects.find((candidate) => candidate.name === name);
    const message = progress?.message ?? `Waiting to run ${name}: other objects go first.`;
    const verdict: Verdict = { state: 'progressing', reason: reasonOf(effect?.phase ?? 'apply'), message };
    return {
      ...this.notDone(memory, effects, effect, verdict, undefined),
      status: { ...this.statusOf(memory, effects), ...progress?.status },
    };
  }

  /** With the runs that were begun, where the kind's status has a field `attempts`. */
  private statusOf(memory: Memory, effects: readonly AnyEffect[]): StatusFields {
    const fields = this.options.kind.schema.status.properties ?? {};
    if (!Object.hasOwn(fields, 'attempts')) return memory.status;
    const attempts = effects.flatMap(({ name }) => memory.state.records[name]?.attempts ?? []);
    return attempts.length === 0 ? memory.status : { ...memory.status, attempts: Math.max(...attempts) };
  }

  private notDone(
    memory: Memory,
    effects: readonly AnyEffect[],
    effect: AnyEffect | undefined,
    verdict: Verdict,
    afterMs: number | undefined,
  ): EffectsFound {
    return {
      done: false,
      verdict,
      status: this.statusOf(memory, effects),
      conditions: this.conditions(memory, effects, { effect, verdict }),
      ...(afterMs === undefined ? {} : { afterMs }),
    };
  }

  /** Effects before the one that is not done are done; those after it wait for it. */
  private conditions(
    memory: Memory,
    effects: readonly AnyEffect[],
    open: { readonly effect: AnyEffect | undefined; readonly verdict: Verdict } | undefined,
  ): readonly EffectCondition[] {
    const at = open?.effect === undefined ? -1 : effects.indexOf(open.effect);
    return effects.flatMap(({ name, condition: type }, i): readonly EffectCondition[] => {
      if (type === undefined) return [];
      const record = memory.state.records[name];
      const isDone = open === undefined || (at >= 0 && i < at);
      if (isDone) return [{ type, status: 'True', reason: 'Succeeded', message: record?.message ?? 'Done.' }];
      const { reason, message } = open.verdict;
      return [{ type, status: 'False', reason, message }];
    });
  }
}

/** What an effect that is not to run now means for its object. */
function judge(
  next: Exclude<Due, { readonly what: 'run' }>,
  { name, maxAttempts, phase, everySeconds }: EffectRun,
  record: EffectRecord | undefined,
): Considered {
  const { reason = reasonOf(phase), message = 'It was interrupted.', attempts = 0, hopeless = false } = record ?? {};
  switch (next.what) {
    case 'satisfied':
      return next.inMs === undefined ? {} : { afterMs: next.inMs };
    case 'later': {
      const seconds = Math.ceil(next.inMs / 1000);
      const text = `${message} (${name}, attempt ${attempts} of ${maxAttempts} failed; the next follows in ${seconds} s.)`;
      // Rounded, since the text would change with every look otherwise.
      const stable = text.replace(/in \d+ s/, 'by itself');
      return { verdict: { state: 'failing', reason, message: stable }, afterMs: next.inMs };
    }
    case 'exhausted': {
      if (everySeconds !== undefined) {
        return {
          verdict: { state: 'failing', reason, message },
          ...(next.inMs === undefined ? {} : { afterMs: next.inMs }),
        };
      }
      const why = hopeless ? 'another attempt would end the same' : `${attempts} of ${maxAttempts} attempts failed`;
      const help =
        'It is tried again when the spec, a Secret it names, or the annotation kindred.dev/reconcile-at changes.';
      const out =
        phase === 'remove' ? ' The annotation kindred.dev/force-remove: "true" lets the object go as it is.' : '';
      return { verdict: { state: 'stalled', reason, message: `${message} (${name}: ${why}.) ${help}${out}` } };
    }
  }
}

function reasonOf(phase: EffectPhase): string {
  return phase === 'apply' ? 'Provisioning' : 'Removing';
}

function uidOf(object: KubeObject): string {
  const { uid } = object.metadata;
  if (uid === undefined)
    throw new TypeError(`${object.kind} ${object.metadata.name} has no uid: it stands on no server`);
  return uid;
}
