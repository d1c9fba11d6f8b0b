import { createHash } from 'node:crypto';
import type { ObjectKeyRef } from '../../constructs/kind/reads';
import {
  externalSources,
  renderSource,
  encodeStdin,
  type ExternalSource,
  type NamedValue,
} from '../../provision/task/script-io';
import type { OutputRef, StdinValue, Task } from '../../provision/task/task';
import type { MachineFailure } from './transport';

/**
 * What is stored of a task that was started: enough to decide whether it must run again, to pass its outputs
 * to other tasks, and to remove it when the plan no longer has it.
 *
 * It is secret, because the outputs are.
 */
export interface TaskRecord {
  /** Without `apply`, which is never run from a record. */
  readonly task: Omit<Task, 'apply'>;
  /**
   * Hash of the script and its stdin when it last succeeded.
   * @default it was started and has not succeeded since
   */
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

/** A task as a record stores it. */
export function toRecordedTask(task: Task): Omit<Task, 'apply'> {
  return Object.fromEntries(Object.entries(task).filter(([name]) => name !== 'apply')) as unknown as Omit<
    Task,
    'apply'
  >;
}

/**
 * Looks up values from Secrets and files. An error of a lookup fails the task; its message must contain no
 * secret.
 */
export interface ValueLookup {
  secret(ref: ObjectKeyRef): Promise<string>;
  /** @param path - below the configured directory */
  file(path: string): Promise<string>;
}

/** What a script reads, with its values looked up. */
export interface TaskInput {
  readonly stdin: string;
  /** Hash of the script and its values, except volatile ones. A changed hash is a reason to run again. */
  readonly hash: string;
}

/**
 * Looks up and renders what a script reads.
 *
 * @param output - gives the output of an earlier task, in plain text
 */
export async function resolveTaskInput(
  script: string,
  values: readonly StdinValue[],
  lookup: ValueLookup,
  output: (ref: OutputRef) => string,
): Promise<TaskInput> {
  const rendered: (NamedValue & Pick<StdinValue, 'volatile'>)[] = [];
  for (const { name, from, volatile } of values) {
    const found = new Map<ExternalSource, string>();
    for (const leaf of externalSources(from)) found.set(leaf, await leafValue(leaf, lookup, output));
    const value = renderSource(from, (leaf) => found.get(leaf) ?? '');
    rendered.push({ name, value, ...(volatile !== undefined && { volatile }) });
  }
  const lasting = rendered.filter(({ volatile }) => volatile !== true);
  const hash = createHash('sha256')
    .update(JSON.stringify([script, lasting.map(({ name, value }) => [name, value])]))
    .digest('hex');
  return { stdin: encodeStdin(rendered), hash };
}

async function leafValue(
  leaf: ExternalSource,
  lookup: ValueLookup,
  output: (ref: OutputRef) => string,
): Promise<string> {
  if ('secret' in leaf) return lookup.secret(leaf.secret);
  if ('file' in leaf) return lookup.file(leaf.file);
  return output(leaf.output);
}

/**
 * Why a task failed: a reason of the transport, or one of its script (`PreflightFailed`, `DiskFull`, ...).
 */
type TaskFailure = MachineFailure | (string & {});

/** A task failed. The message says what, where and what to do, and contains no secret. */
export class TaskError extends Error {
  override readonly name = 'TaskError';
  constructor(
    /** The task's id. */
    readonly task: string,
    readonly reason: TaskFailure,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(`${task}: ${message}`, options);
  }
}
