import type { Task } from '../../../provision/task/task';

/**
 * What is known of a task that was started once: enough to tell whether it must run again, to give its outputs to others, and to take it
 * away when the plan no longer has it.
 *
 * It is a secret: the outputs are.
 */
export interface TaskRecord {
  /** Without `apply`, which is never run from a record. */
  readonly task: Omit<Task, 'apply'>;
  /** What the script and its stdin were when it last succeeded. None: it was started and has not succeeded since. */
  readonly inputHash?: string;
  /** Values in base64, by name. */
  readonly outputs: Readonly<Record<string, string>>;
}

/** The records of a plan, in the order in which their tasks were first started. */
export class TaskRecords {
  readonly #byId: Map<string, TaskRecord>;

  constructor(records: readonly TaskRecord[]) {
    this.#byId = new Map(records.map((record) => [record.task.id, record]));
  }

  get(id: string): TaskRecord | undefined {
    return this.#byId.get(id);
  }

  /** Adds a record, or replaces the one of the same task. */
  set(record: TaskRecord): void {
    this.#byId.set(record.task.id, record);
  }

  delete(id: string): void {
    this.#byId.delete(id);
  }

  list(): readonly TaskRecord[] {
    return [...this.#byId.values()];
  }
}

/** A task as a record keeps it. */
export function recordable(task: Task): Omit<Task, 'apply'> {
  return Object.fromEntries(Object.entries(task).filter(([name]) => name !== 'apply')) as unknown as Omit<
    Task,
    'apply'
  >;
}
