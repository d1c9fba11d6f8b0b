import type { EffectRun } from '../../../constructs/kind/effects';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ObjectEvent } from '../reconcile/context';
import { beginningOf } from '../runtime/beginning-of';
import type { Clock } from '../runtime/clock';
import { NotLeaderError } from '../runtime/leader-errors';
import type { EffectRecord } from './effect-record';
import type { EffectReads } from './effect-reads';
import type { EffectState } from './effect-store';
import {
  PlanError,
  RunInterrupted,
  type PlanEnd,
  type PlanRun,
  type PlanRunner,
  type RunProgress,
  type RunValues,
  type StatusFields,
} from './plan-runner';

/** One run of an effect, with all that it touches. */
export interface RunOptions {
  readonly object: KubeObject;
  readonly run: EffectRun;
  readonly attempt: number;
  readonly begun: Pick<EffectRecord, 'input' | 'countedFor'>;
  readonly plans: Readonly<Record<string, PlanRunner>>;
  readonly reads: EffectReads;
  readonly clock: Clock;
  readonly stop: AbortSignal;
  /** Called before each step. @throws RunInterrupted saying why nothing more may be begun; anything else: another process leads */
  readonly assertMayRun: () => void;
  readonly record: (regarding: KubeObject, event: ObjectEvent) => void;
  readonly report: (progress: RunProgress) => void;
  readonly state: () => EffectState;
  readonly save: (state: EffectState) => Promise<void>;
  /** @throws PlanError when such a state could not be saved */
  readonly assertFits: (state: EffectState) => Promise<void>;
  /** Effects whose place this one takes: they must run again should they concern the object once more. */
  readonly superseded: readonly string[];
  /** Told of status fields that stay. */
  readonly learn: (status: StatusFields) => void;
}

/**
 * Carries one run out, from the record that it began to the record of how it ended. Never rejects: an end that cannot be stored is kept by
 * the desk, which stores it later.
 */
export async function runEffect(options: RunOptions): Promise<void> {
  const { object, run, record } = options;
  try {
    await keep(options, { state: 'running' });
  } catch (error) {
    // Nothing is begun whose beginning is not on record: a crash loop would never be counted.
    await end(options, {
      state: 'failed',
      reason: 'ErrState',
      message: `The state cannot be stored: ${describe(error)}`,
    });
    return;
  }
  const action = run.phase === 'apply' ? 'Provision' : 'Remove';
  const quiet = run.everySeconds !== undefined;
  try {
    const { message, status } = await carryOut(options);
    if (status !== undefined) options.learn(status);
    await end(options, { state: 'succeeded', message, ...(status && { status }) });
    const reason = run.phase === 'apply' ? 'Provisioned' : 'Removed';
    if (!quiet) record(object, { type: 'Normal', action, reason, message: `${run.name}: ${message}` });
  } catch (error) {
    // What a run learns cannot be stored without the Lease: another replica goes on, and this one may say nothing about it.
    if (error instanceof RunInterrupted || error instanceof NotLeaderError) {
      await end(options, { state: 'interrupted', message: error.message });
      return;
    }
    const failure = failureOf(error);
    const { reason, message, hopeless, status } = failure;
    if (status !== undefined) options.learn(status);
    record(object, { type: 'Warning', action, reason, message: beginningOf(`${run.name}: ${message}`, 1024) });
    await end(options, { state: 'failed', reason, message, ...(hopeless && { hopeless }), ...(status && { status }) });
  }
}

async function carryOut(options: RunOptions): Promise<PlanEnd> {
  const { run, plans, object, attempt, reads, stop, report, record } = options;
  const runner = plans[run.plan];
  if (runner === undefined) {
    const known = Object.keys(plans).sort().join(', ');
    throw new PlanError('ErrPlan', `the plan ${run.plan} is not known here; known are ${known}`, { hopeless: true });
  }
  const timeout = new AbortController();
  const cancel = options.clock.setTimer(
    () => timeout.abort(new Error(`${run.name} took longer than ${run.timeoutSeconds} s`)),
    run.timeoutSeconds * 1000,
    { background: true },
  );
  const action = run.phase === 'apply' ? 'Provision' : 'Remove';
  const planRun: PlanRun = {
    ...{ object, run, attempt, stop, values: valuesOf(options) },
    timeout: timeout.signal,
    secret: (ref) => reads.secret(ref, object),
    file: (path) => reads.file(path),
    mayGoOn: () => assertGoesOn(options),
    warn: (warning) => record(object, { type: 'Warning', action, ...warning }),
    report: (progress) => {
      report(progress);
      if (progress.event === true) {
        const reason = run.phase === 'apply' ? 'Provisioning' : 'Removing';
        record(object, { type: 'Normal', action, reason, message: beginningOf(progress.message, 1024) });
      }
    },
  };
  try {
    planRun.mayGoOn();
    return await runner(planRun);
  } finally {
    cancel();
  }
}

function assertGoesOn({ stop, assertMayRun }: RunOptions): void {
  if (stop.aborted) throw new RunInterrupted('The operator stopped; the run goes on where it was.');
  try {
    assertMayRun();
  } catch (cause) {
    if (cause instanceof RunInterrupted) throw cause;
    throw new RunInterrupted('The Lease was lost; another replica goes on.', { cause });
  }
}

function valuesOf({ state, save, assertFits }: RunOptions): RunValues {
  const withValues = (values: Readonly<Record<string, string | undefined>>): EffectState => {
    const { records, values: before } = state();
    const after = Object.entries({ ...before, ...values }).filter((entry): entry is [string, string] => {
      return entry[1] !== undefined;
    });
    return { records, values: Object.fromEntries(after) };
  };
  return {
    all: () => state().values,
    put: (values) => save(withValues(values)),
    assertFit: (values) => assertFits(withValues(values)),
  };
}

async function end(options: RunOptions, how: Partial<EffectRecord> & Pick<EffectRecord, 'state'>): Promise<void> {
  try {
    await keep(options, how);
  } catch {
    // The desk has it, and stores it when the object is reconciled next, which says why it could not.
  }
}

function keep(
  { run, begun, attempt, clock, state, save, superseded }: RunOptions,
  how: Partial<EffectRecord> & Pick<EffectRecord, 'state'>,
): Promise<void> {
  // Who was interrupted in order has used up no attempt.
  const attempts = how.state === 'interrupted' ? attempt - 1 : attempt;
  const { records, values } = state();
  const record: EffectRecord = { ...begun, attempts, atMs: clock.wallMs(), ...how };
  const others = Object.entries(records).filter(([name]) => !superseded.includes(name));
  return save({ records: { ...Object.fromEntries(others), [run.name]: record }, values });
}

function failureOf(error: unknown): {
  readonly reason: string;
  readonly message: string;
  readonly hopeless: boolean;
  readonly status?: StatusFields;
} {
  if (!(error instanceof PlanError)) return { reason: 'ErrRun', message: describe(error), hopeless: false };
  const { hopeless = false, status } = error.details;
  return { reason: error.reason, message: error.message, hopeless, ...(status === undefined ? {} : { status }) };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
