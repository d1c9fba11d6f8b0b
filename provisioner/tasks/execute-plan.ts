import { errorMessage } from '../../constructs/kube/errors';
import { decodeOutput, parseScriptResult, encodeStdin, type NamedValue } from '../../provision/task/script-io';
import type { ScriptResult, Machine, OutputRef, Task } from '../../provision/task/task';
import {
  TaskError,
  TaskRecords,
  toRecordedTask,
  resolveTaskInput,
  type TaskInput,
  type TaskRecord,
  type ValueLookup,
} from './task-record';
import { MachineError, type Transport } from './transport';

/** What to execute, and with what. */
export interface ExecutePlanOptions {
  /** The tasks, each behind those in its `after`. Empty: everything is removed. */
  readonly plan: readonly Task[];
  /** What `save` last received. @default nothing was ever executed */
  readonly previous?: readonly TaskRecord[];
  readonly transport: Transport;
  readonly lookup: ValueLookup;
  /**
   * Makes the records durable. Called before a task starts and after it ends, one call at a time; no further
   * task starts before it resolves. If it throws, no further task starts, and it is still called for each
   * running task when that ends.
   */
  readonly save: (records: readonly TaskRecord[]) => Promise<void>;
  /** How many tasks run at once, at most. @default 4 */
  readonly concurrency?: number;
  /** Stops the execution: running tasks end, no further task starts. */
  readonly signal?: AbortSignal;
  /** Values that each removal reads besides those of its record. @default none */
  readonly removalValues?: readonly NamedValue[];
  /**
   * Whether a machine is lost for good. Its tasks are dropped without their removal, with an event `skipped`.
   * @default no machine is
   */
  readonly isLost?: (machine: Machine) => boolean;
  readonly onEvent?: (event: TaskEvent) => void;
}

/** What happens to one task; contains no secret. */
export interface TaskEvent {
  readonly task: Pick<Task, 'id' | 'description'>;
  readonly action: 'apply' | 'remove';
  readonly phase: 'started' | 'succeeded' | 'failed' | 'skipped';
  /** Whether the script changed anything on the machine; set once it has ended with a result. */
  readonly changed?: boolean;
  /** Why it failed, or its script's message. */
  readonly message?: string;
}

/** The result of {@link executePlan}. */
export interface ExecutePlanResult {
  /** True when the machines are as the plan says. */
  readonly complete: boolean;
  /** Ids of the tasks whose script ran, in the order in which they ended. */
  readonly ran: readonly string[];
  /** Ids of the tasks that changed something on their machine. */
  readonly changed: readonly string[];
  /** More than one when several tasks failed that ran at the same time. */
  readonly errors: readonly TaskError[];
  readonly records: readonly TaskRecord[];
}

/** What the tasks of one execution share. */
interface ExecutionContext extends ExecutePlanOptions {
  readonly known: TaskRecords;
  readonly ran: string[];
  readonly changed: string[];
}

/**
 * Executes a plan as {@link Task} describes: applies the tasks that are new or whose script or stdin changed,
 * in the order of `after`; then removes those that the plan no longer has, in reverse order. Nothing changed
 * = nothing run.
 *
 * Guarantees:
 * - A task starts only when those in its `after` have succeeded; after a failure no further task starts.
 * - A record is durable before its task starts, and its outputs, also those of a failed run, before the next
 *   task starts. After an interruption, the same call with the records last saved continues from there.
 *
 * Assumptions: scripts can be repeated; only one process executes the plans of a cluster at a time.
 *
 * @throws RangeError for a plan that is out of order; otherwise only what `save` throws
 */
export async function executePlan(options: ExecutePlanOptions): Promise<ExecutePlanResult> {
  const { plan, previous = [], concurrency = 4, signal } = options;
  const known = new TaskRecords(previous);
  const save = oneAtATime(() => options.save(known.list()));
  const context: ExecutionContext = { ...options, save, known, ran: [], changed: [] };
  requireOrder(plan);
  const wanted = new Set(plan.map(({ id }) => id));
  // A task that left the plan loses its hash, since any removal may undo it: if it returns, it must run
  // again.
  for (const { task, outputs } of known.list().filter(({ task: { id } }) => !wanted.has(id)))
    known.set({ task, outputs });
  const applying = await runInOrder({
    steps: plan.map((task) => ({ id: task.id, after: task.after, run: () => applyTask(task, context) })),
    concurrency,
    signal,
  });
  const gone = known.list().filter(({ task }) => !wanted.has(task.id));
  const removing = applying.complete
    ? await runInOrder({ steps: removals(gone, context), concurrency, signal })
    : { complete: false, errors: [] };
  return {
    complete: applying.complete && removing.complete,
    ran: context.ran,
    changed: context.changed,
    errors: [...applying.errors, ...removing.errors],
    records: known.list(),
  };
}

/** The removals as steps, each after those of the tasks that depended on it. */
function removals(gone: readonly TaskRecord[], context: ExecutionContext): Parameters<typeof runInOrder>[0]['steps'] {
  return gone
    .map((record) => ({
      id: record.task.id,
      after: gone.filter(({ task }) => task.after.includes(record.task.id)).map(({ task }) => task.id),
      run: () => removeTask(record, context),
    }))
    .reverse();
}

function requireOrder(plan: readonly Task[]): void {
  const seen = new Set<string>();
  for (const { id, after } of plan) {
    const missing = after.find((earlier) => !seen.has(earlier));
    if (missing !== undefined)
      throw new RangeError(`task ${id} comes after ${missing}, which does not stand before it`);
    if (seen.has(id)) throw new RangeError(`two tasks have the id ${id}`);
    seen.add(id);
  }
}

/**
 * Serializes calls: each waits for the one before, and sees the records at its own start. After a failure
 * each call is still attempted but rejects, so outputs of scripts that were running are saved, and no further
 * script starts.
 */
function oneAtATime(act: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  const afterFailure = async (failure: unknown): Promise<void> => {
    await act();
    throw failure;
  };
  return () => {
    last = last.then(act, afterFailure);
    return last;
  };
}

/** Applies a task unless its record is up to date. @throws TaskError */
async function applyTask(task: Task, context: ExecutionContext): Promise<void> {
  const { known, save } = context;
  const before = known.get(task.id);
  const input = await inputOf(task, task.apply, context);
  const outputs = before?.outputs ?? {};
  if (before?.inputHash === input.hash && hasAll(task, outputs)) {
    // Its removal, its machine's host key and the like may have changed.
    if (JSON.stringify(before.task) === JSON.stringify(toRecordedTask(task))) return;
    known.set({ ...before, task: toRecordedTask(task) });
    return save(known.list());
  }
  known.set({ task: toRecordedTask(task), outputs });
  await save(known.list());
  const answer = await runWithEvents(task, 'apply', context, () =>
    runTask({ task, script: task.apply, stdin: input.stdin, transport: context.transport }),
  );
  const all = { ...outputs, ...declared(task, answer) };
  const done = answer.ok && hasAll(task, all);
  known.set({ task: toRecordedTask(task), outputs: all, ...(done && { inputHash: input.hash }) });
  await save(known.list());
  if (!answer.ok) throw toTaskError(task.id, answer);
  if (!done)
    throw new TaskError(task.id, 'NoAnswer', `its answer lacks one of its outputs: ${(task.outputs ?? []).join(', ')}`);
}

/** Looks up what a script reads. @throws TaskError when a value is not available */
async function inputOf(
  { id, stdin = [] }: Pick<Task, 'id' | 'stdin'>,
  script: string,
  { lookup, known }: ExecutionContext,
): Promise<TaskInput> {
  try {
    return await resolveTaskInput(script, stdin, lookup, (ref) => {
      // Its own output of the previous run: the first run has none.
      if (ref.task === id && known.get(id)?.outputs[ref.name] === undefined) return '';
      return outputOf(known, ref);
    });
  } catch (cause) {
    throw new TaskError(id, 'ValueMissing', cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** Runs a script, with events at its start and its end. A result with `ok: false` is returned, not thrown. */
async function runWithEvents(
  task: Omit<Task, 'apply'>,
  action: TaskEvent['action'],
  { onEvent, ran, changed }: ExecutionContext,
  run: () => Promise<ScriptResult>,
): Promise<ScriptResult> {
  const tell = (phase: TaskEvent['phase'], more: Partial<TaskEvent> = {}): void =>
    onEvent?.({ task: { id: task.id, description: task.description }, action, phase, ...more });
  tell('started');
  try {
    const answer = await run();
    if (answer.changed) changed.push(task.id);
    const said = answer.message === undefined ? {} : { message: answer.message };
    tell(answer.ok ? 'succeeded' : 'failed', { changed: answer.changed, ...said });
    return answer;
  } catch (error) {
    tell('failed', { message: errorMessage(error) });
    throw error;
  } finally {
    ran.push(task.id);
  }
}

/** The declared outputs of a task. Others that the machine sends would only fill the state. */
function declared({ outputs = [] }: Task, answer: ScriptResult): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(answer.outputs ?? {}).filter(([name]) => outputs.includes(name)));
}

function hasAll({ outputs = [] }: Task, given: Readonly<Record<string, string>>): boolean {
  return outputs.every((name) => given[name] !== undefined);
}

function outputOf(known: TaskRecords, { task, name }: OutputRef): string {
  const record = known.get(task);
  const text = record && decodeOutput({ ok: true, changed: false, outputs: record.outputs }, name);
  if (text === undefined) throw new RangeError(`the task ${task} has not given its output ${name} yet`);
  return text;
}

/** Runs the removal of a task, and deletes its record. @throws TaskError */
async function removeTask({ task }: TaskRecord, context: ExecutionContext): Promise<void> {
  const { known, save, transport, removalValues = [], isLost, onEvent } = context;
  const { remove } = task;
  if (remove !== undefined && task.machine !== undefined && isLost?.(task.machine) === true) {
    const { id, description } = task;
    const message = `${task.machine.address} is gone for good, so nothing was removed there`;
    onEvent?.({ task: { id, description }, action: 'remove', phase: 'skipped', message });
  } else if (remove !== undefined) {
    const reads = task.removeReadsStdin === false ? { id: task.id } : { id: task.id, stdin: task.stdin ?? [] };
    const { stdin } = await inputOf(reads, remove, context);
    const all = `${stdin}${encodeStdin(removalValues)}`;
    const answer = await runWithEvents(task, 'remove', context, () =>
      runTask({ task, script: remove, stdin: all, transport }),
    );
    if (!answer.ok) throw toTaskError(task.id, answer);
  }
  known.delete(task.id);
  await save(known.list());
}

/** One run of one of a task's scripts. */
interface TaskRun {
  readonly task: Pick<Task, 'id' | 'machine' | 'timeoutSeconds'>;
  readonly script: string;
  readonly stdin: string;
  readonly transport: Transport;
}

/**
 * Runs a script and parses its result, which may have `ok: false`.
 *
 * @throws TaskError when there is no result; its message contains nothing that the script wrote
 */
async function runTask({ task, script, stdin, transport }: TaskRun): Promise<ScriptResult> {
  const { id, machine, timeoutSeconds } = task;
  try {
    const { stdout } = await transport.run({ machine, script, stdin, timeoutSeconds });
    return parseScriptResult(stdout);
  } catch (cause) {
    const reason = cause instanceof MachineError ? cause.reason : 'NoAnswer';
    throw new TaskError(id, reason, cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** The error for a result with `ok: false`. */
function toTaskError(
  id: string,
  { reason = 'Failed', message = 'it failed and does not say why' }: ScriptResult,
): TaskError {
  return new TaskError(id, reason, message);
}

/** A unit of work, run after others. */
interface Step {
  readonly id: string;
  /** Ids of other steps; unknown ids count as done. */
  readonly after: readonly string[];
  /** Throws a {@link TaskError} when it fails. */
  readonly run: () => Promise<void>;
}

interface InOrderOptions {
  readonly steps: readonly Step[];
  readonly concurrency: number;
  /** No step starts once it is aborted. */
  readonly signal?: AbortSignal | undefined;
}

interface InOrder {
  readonly complete: boolean;
  readonly errors: readonly TaskError[];
}

/**
 * Runs each step once those in its `after` are done, several at a time, in the order given. After a failure
 * or an abort no step starts; running ones end.
 *
 * @throws what a step throws that is not a TaskError, after the other running steps have ended
 */
async function runInOrder({ steps, concurrency, signal }: InOrderOptions): Promise<InOrder> {
  const waiting = new Map(steps.map((step) => [step.id, step]));
  const open = new Set(waiting.keys());
  const running = new Set<Promise<void>>();
  const errors: TaskError[] = [];
  const fatal: unknown[] = [];
  const start = (step: Step): void => {
    waiting.delete(step.id);
    const run = step
      .run()
      .then(
        () => void open.delete(step.id),
        (error: unknown) => {
          if (error instanceof TaskError) errors.push(error);
          else fatal.push(error);
        },
      )
      .finally(() => running.delete(run));
    running.add(run);
  };
  for (;;) {
    const mayStart = errors.length === 0 && fatal.length === 0 && signal?.aborted !== true;
    const ready = mayStart ? [...waiting.values()].filter(({ after }) => !after.some((id) => open.has(id))) : [];
    for (const step of ready.slice(0, Math.max(0, concurrency - running.size))) start(step);
    if (running.size === 0) break;
    await Promise.race(running);
  }
  if (fatal.length > 0) throw fatal[0];
  return { complete: open.size === 0, errors };
}
