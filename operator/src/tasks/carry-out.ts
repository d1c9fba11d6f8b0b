import { applyTask } from './apply-task';
import { runInOrder } from './run-in-order';
import { removeTask } from './remove-task';
import { TaskRecords, type TaskRecord } from './task-record';
import type { TaskError } from './task-error';
import type { ValueLookup } from './task-input';
import type { Transport } from './transport';
import type { NamedValue } from '../../../provision/task/script-io';
import type { Machine, Task } from '../../../provision/task/task';

/** What to carry out, and with what. */
export interface CarryOutOptions {
  /** Each task stands after those it comes after. Empty: everything is taken away. */
  readonly plan: readonly Task[];
  /** What `save` was last given. @default nothing was ever carried out */
  readonly previous?: readonly TaskRecord[];
  readonly transport: Transport;
  readonly lookup: ValueLookup;
  /**
   * Makes the records durable. Called before a task is started and after it ended, one call at a time; no further task starts before it has
   * resolved. What it throws ends the carrying out: no further task starts, and it is called for each one under way when that ends.
   */
  readonly save: (records: readonly TaskRecord[]) => Promise<void>;
  /** How many tasks run at once, at most. @default 4 */
  readonly concurrency?: number;
  /** Ends the carrying out: what is under way comes to its end, nothing else starts. */
  readonly signal?: AbortSignal;
  /** What each removal reads besides what its record names. @default nothing */
  readonly removalValues?: readonly NamedValue[];
  /**
   * Whether a machine is gone for good. What would have to be removed there is forgotten instead, with an event `skipped`.
   * @default none is
   */
  readonly isLost?: (machine: Machine) => boolean;
  readonly onEvent?: (event: TaskEvent) => void;
}

/** What happens to one task; holds no secret. */
export interface TaskEvent {
  readonly task: Pick<Task, 'id' | 'description'>;
  readonly action: 'apply' | 'remove';
  readonly phase: 'started' | 'succeeded' | 'failed' | 'skipped';
  /** Whether anything was done on the machine; once it succeeded. */
  readonly changed?: boolean;
  /** Why it failed, or what its script says. */
  readonly message?: string;
}

/** How far it came. */
export interface CarriedOut {
  /** True when the machines are as the plan says. */
  readonly complete: boolean;
  /** Ids of the tasks whose script was run, in the order in which they ended. */
  readonly ran: readonly string[];
  /** Ids of those that did something on their machine. */
  readonly changed: readonly string[];
  /** More than one when tasks that ran at once failed. */
  readonly errors: readonly TaskError[];
  readonly records: readonly TaskRecord[];
}

/** What the steps of one carrying out share. */
export interface CarryOutContext extends CarryOutOptions {
  readonly known: TaskRecords;
  readonly ran: string[];
  readonly changed: string[];
}

/**
 * Carries out a plan as {@link Task} says: tasks that are new or whose script or stdin changed are applied, in the order of `after`; then those
 * that the plan no longer has are removed, each before what it came after. Nothing changed = nothing run.
 *
 * Guarantees:
 * - A task starts only when those it comes after have succeeded; after a failure nothing new starts.
 * - A record is durable before its task starts, and its outputs are before the next one does, those of a run that failed too: whenever this is
 *   cut short, the same call with the records last saved goes on from there.
 *
 * Assumptions: scripts can be repeated; only one process carries out the plans of a cluster at a time.
 *
 * @throws RangeError for a plan that is out of order; otherwise only what `save` throws
 */
export async function carryOut(options: CarryOutOptions): Promise<CarriedOut> {
  const { plan, previous = [], concurrency = 4, signal } = options;
  const known = new TaskRecords(previous);
  const save = oneAtATime(() => options.save(known.list()));
  const context: CarryOutContext = { ...options, save, known, ran: [], changed: [] };
  requireOrder(plan);
  const wanted = new Set(plan.map(({ id }) => id));
  // What leaves the plan may be undone by any of its tasks: should it come back, it is not known to stand.
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

/** Each of them after those that came after it. */
function removals(gone: readonly TaskRecord[], context: CarryOutContext): Parameters<typeof runInOrder>[0]['steps'] {
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
 * Calls that come in the meantime wait for the one under way; each sees what stands when it starts. Each is attempted, but after a failure none
 * resolves any more: what a script gave while another's records could not be saved is kept, and whoever waits to start a script starts none.
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
