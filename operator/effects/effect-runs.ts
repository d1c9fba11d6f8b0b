import { errorMessage } from '../../constructs/kube/errors';
import type { EffectRun } from '../../constructs/kind/effects';
import { KindFunctionError } from '../../constructs/kube/function-error';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { describeObject } from '../../constructs/kind/validate';
import { ApiError, TransportError } from '../client/errors';
import { NotLeaderError } from '../leader/leader-election';
import type { Clock } from '../process/clock';
import { truncate } from '../process/truncate';
import type { ObjectEvent } from '../reconcile/context';
import type { EffectInputReader } from './effect-input-reader';
import { nextRecord, supersededRecord, type EffectRecord, type EffectState } from './effect-state';
import { missingRule, withStop } from './forbidden';
import {
  PlanError,
  RunInterruptedError,
  type PlanResult,
  type PlanRun,
  type PlanRunner,
  type RunProgress,
  type RunValues,
  type StatusFields,
} from './plan-runner';

/** A running or queued run. */
export interface RunView {
  readonly effect: string;
  readonly state: 'waiting' | 'running';
  /** The `metadata.generation` of the object for which it was requested. */
  readonly generation: number | undefined;
  /** The latest report. */
  readonly progress?: RunProgress;
}

/** A requested run. */
export interface RunRequest {
  /** The effect's name. */
  readonly effect: string;
  /** The object's `metadata.generation`. @default unknown */
  readonly generation?: number | undefined;
  /** Called when its turn comes, which may be much later. Must not reject. */
  readonly job: (report: (progress: RunProgress) => void) => Promise<void>;
  /** Called after every report, and at the end. */
  readonly onChange: () => void;
  /**
   * It only reads, and ends soon: probes wait for each other, but probes and long runs do not wait for each
   * other. @default false
   */
  readonly isProbe?: boolean;
}

interface Entry {
  effect: string;
  isProbe: boolean;
  generation: number | undefined;
  state: 'waiting' | 'running';
  progress?: RunProgress;
  begin: () => void;
}

/**
 * The runs of effects: at most one per object, at most `limit` in all and as many probes, in the order of
 * their requests.
 *
 * Guarantees: after `stop` aborts no run begins; queued ones are dropped.
 */
export class EffectRunQueue {
  private readonly entries = new Map<string, Entry>();
  private running = 0;
  private ends: (() => void)[] = [];

  constructor(
    private readonly options: {
      /** How many run at once. */
      readonly limit: number;
      readonly stop: AbortSignal;
    },
  ) {
    options.stop.addEventListener('abort', () => this.dropWaiting(), { once: true });
  }

  /** The run of an object, if any. */
  of(uid: string): RunView | undefined {
    return this.entries.get(uid);
  }

  /**
   * Requests a run. After a stop it does nothing.
   *
   * @throws Error when the object has a run already
   */
  start(uid: string, run: RunRequest): void {
    if (this.entries.has(uid)) throw new Error(`an effect of ${uid} is under way already`);
    if (this.options.stop.aborted) return;
    const { effect, isProbe = false, generation } = run;
    const begin = (): void => void this.execute(uid, entry, run);
    const entry: Entry = { effect, isProbe, generation, state: 'waiting', begin };
    this.entries.set(uid, entry);
    this.next(isProbe);
  }

  /** Drops the run of an object if it is queued. A running one goes on. */
  cancelWaiting(uid: string): void {
    if (this.entries.get(uid)?.state === 'waiting') this.entries.delete(uid);
  }

  /** Resolves when no run is running. */
  waitUntilIdle(): Promise<void> {
    return this.running === 0 ? Promise.resolve() : new Promise((resolve) => this.ends.push(resolve));
  }

  /** How many runs are running. */
  get size(): number {
    return this.running;
  }

  private next(isProbe: boolean): void {
    const alike = [...this.entries.values()].filter((entry) => entry.isProbe === isProbe);
    if (alike.filter(({ state }) => state === 'running').length >= this.options.limit) return;
    const entry = alike.find(({ state }) => state === 'waiting');
    if (entry === undefined) return;
    entry.state = 'running';
    this.running += 1;
    entry.begin();
  }

  private async execute(uid: string, entry: Entry, { job, onChange }: RunRequest): Promise<void> {
    try {
      await job((progress) => {
        entry.progress = { ...progress, status: { ...entry.progress?.status, ...progress.status } };
        onChange();
      });
    } finally {
      this.entries.delete(uid);
      this.running -= 1;
      onChange();
      this.next(entry.isProbe);
      if (this.running === 0) for (const end of this.ends.splice(0)) end();
    }
  }

  private dropWaiting(): void {
    for (const [uid, entry] of this.entries) if (entry.state === 'waiting') this.entries.delete(uid);
  }
}

/** Options of `runEffect`. */
export interface RunEffectOptions {
  readonly object: KubeObject;
  readonly run: EffectRun;
  readonly attempt: number;
  readonly begun: Pick<EffectRecord, 'input' | 'countedFor'>;
  readonly plans: Readonly<Record<string, PlanRunner>>;
  readonly reads: EffectInputReader;
  readonly clock: Clock;
  readonly stop: AbortSignal;
  /**
   * Called before each step.
   *
   * @throws RunInterruptedError saying why nothing more may be started; anything else means that another
   * process leads
   */
  readonly assertMayRun: () => void;
  readonly record: (regarding: KubeObject, event: ObjectEvent) => void;
  readonly report: (progress: RunProgress) => void;
  readonly state: () => EffectState;
  readonly save: (state: EffectState) => Promise<void>;
  /** @throws PlanError when such a state could not be saved */
  readonly assertFits: (state: EffectState) => Promise<void>;
  /** The effect's `reports`. @default any field */
  readonly reports?: readonly string[] | undefined;
  /** Effects that this one replaces: they must run again if they concern the object once more. */
  readonly superseded: readonly string[];
  /** Called with status fields to keep. */
  readonly onStatus: (status: StatusFields) => void;
  /** Called with what the plan threw unexpectedly. @default nothing is logged */
  readonly onPlanError?: (object: KubeObject, error: KindFunctionError) => void;
}

/**
 * Executes one run, from the record that it began to the record of how it ended. Never rejects: an outcome
 * that cannot be stored is kept by the effect reconciler, which stores it later.
 */
export async function runEffect(given: RunEffectOptions): Promise<void> {
  const { object, run, record } = given;
  let reported: StatusFields = {};
  const options: RunEffectOptions = {
    ...given,
    report: (progress) => {
      assertDeclared(given, progress.status);
      reported = { ...reported, ...progress.status };
      given.report(progress);
    },
  };
  try {
    await saveRecord(options, { state: 'running' });
  } catch (error) {
    // No run begins without a stored record: a crash loop would never be counted.
    await saveOutcome(options, {
      state: 'failed',
      reason: 'ErrState',
      message: `The state cannot be stored: ${errorMessage(error)}`,
    });
    return;
  }
  const action = run.phase === 'apply' ? 'Provision' : 'Remove';
  const quiet = run.everySeconds !== undefined;
  try {
    const { message, status } = await runPlan(options);
    reported = { ...reported, ...status };
    options.onStatus(reported);
    await saveOutcome(options, { state: 'succeeded', message, status: reported });
    const reason = run.phase === 'apply' ? 'Provisioned' : 'Removed';
    if (!quiet) record(object, { type: 'Normal', action, reason, message: `${run.name}: ${message}` });
  } catch (error) {
    // Without the Lease nothing that a run learns can be stored: another replica continues it, and this one
    // may not report on it.
    if (error instanceof RunInterruptedError || error instanceof NotLeaderError) {
      await saveOutcome(options, { state: 'interrupted', message: error.message, status: reported });
      return;
    }
    const failure = toRunFailure(error, options);
    const { reason, message, isTerminal, status } = failure;
    reported = { ...reported, ...status };
    options.onStatus(reported);
    record(object, { type: 'Warning', action, reason, message: truncate(`${run.name}: ${message}`, 1024) });
    await saveOutcome(options, {
      state: 'failed',
      reason,
      message,
      ...(isTerminal && { hopeless: true }),
      status: reported,
    });
  }
}

/** @throws PlanError when a run reports what its effect does not declare: children would not wait for it */
function assertDeclared({ run, reports }: RunEffectOptions, status: StatusFields = {}): void {
  const field = reports && Object.keys(status).find((name) => !reports.includes(name));
  if (field === undefined) return;
  const message = `the plan ${run.plan} reported status.${field}, which is not among the \`reports\` of the effect ${run.name}; add it there`;
  throw new PlanError('ErrPlan', message, { isTerminal: true });
}

async function runPlan(options: RunEffectOptions): Promise<PlanResult> {
  const { run, plans, object, attempt, reads, stop, report, record } = options;
  const runner = plans[run.plan];
  if (runner === undefined) {
    const known = Object.keys(plans).sort().join(', ');
    throw new PlanError('ErrPlan', `the plan ${run.plan} is not known here; known are ${known}`, { isTerminal: true });
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
    assertMayContinue: () => assertMayContinue(options),
    warn: (warning) => record(object, { type: 'Warning', action, ...warning }),
    report: (progress) => {
      report(progress);
      if (progress.event === true) {
        const reason = run.phase === 'apply' ? 'Provisioning' : 'Removing';
        record(object, { type: 'Normal', action, reason, message: truncate(progress.message, 1024) });
      }
    },
  };
  try {
    planRun.assertMayContinue();
    const result = await runner(planRun);
    assertDeclared(options, result.status);
    return result;
  } catch (error) {
    if (error instanceof PlanError) assertDeclared(options, error.details.status);
    throw error;
  } finally {
    cancel();
  }
}

function assertMayContinue({ stop, assertMayRun }: RunEffectOptions): void {
  if (stop.aborted) throw new RunInterruptedError('The operator stopped; the run goes on where it was.');
  try {
    assertMayRun();
  } catch (cause) {
    if (cause instanceof RunInterruptedError) throw cause;
    throw new RunInterruptedError('The Lease was lost; another replica goes on.', { cause });
  }
}

function valuesOf({ state, save, assertFits }: RunEffectOptions): RunValues {
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

async function saveOutcome(
  options: RunEffectOptions,
  how: Partial<EffectRecord> & Pick<EffectRecord, 'state'>,
): Promise<void> {
  try {
    await saveRecord(options, how);
  } catch {
    // The effect reconciler keeps it and stores it at the next reconcile, which reports why it could not be
    // stored.
  }
}

function saveRecord(
  { run, begun, attempt, clock, state, save, superseded }: RunEffectOptions,
  how: Partial<EffectRecord> & Pick<EffectRecord, 'state'>,
): Promise<void> {
  // An orderly interruption uses up no attempt.
  const attempts = how.state === 'interrupted' ? attempt - 1 : attempt;
  const { records, values } = state();
  const record = nextRecord(records[run.name], { ...begun, attempts, atMs: clock.wallMs(), ...how });
  const others: Record<string, EffectRecord> = {};
  for (const [name, other] of Object.entries(records))
    others[name] = superseded.includes(name) ? supersededRecord(other) : other;
  return save({ records: { ...others, [run.name]: record }, values });
}

/** Why a run failed. Where a permission is missing, the message says which, and where it is granted. */
function toRunFailure(error: unknown, { object, run, onPlanError }: RunEffectOptions): RunFailure {
  const rule = missingRule(error, object);
  // What was read by `secret` says it already.
  const withRule = (said: string): string =>
    rule === undefined || said.includes(rule) ? said : `${withStop(said)} ${rule}`;
  if (error instanceof PlanError) {
    const { isTerminal = false, status } = error.details;
    const message = withRule(error.message);
    return { reason: error.reason, message, isTerminal, ...(status === undefined ? {} : { status }) };
  }
  const reason = rule === undefined ? 'ErrRun' : 'ErrForbidden';
  // What the cluster answered says all of it.
  if (error instanceof ApiError || error instanceof TransportError)
    return { reason, message: withRule(error.message), isTerminal: false };
  const failure = new KindFunctionError(describeObject(object), run.plan, error);
  onPlanError?.(object, failure);
  return { reason, message: withRule(failure.summary), isTerminal: false };
}

interface RunFailure {
  readonly reason: string;
  readonly message: string;
  readonly isTerminal: boolean;
  readonly status?: StatusFields;
}
