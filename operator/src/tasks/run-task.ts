import { parseAnswer } from '../../../provision/task/script-io';
import type { Answer, Task } from '../../../provision/task/task';
import { TaskError } from './task-error';
import { MachineError, type Transport } from './transport';

/** One run of one of a task's scripts. */
export interface TaskRun {
  readonly task: Pick<Task, 'id' | 'machine' | 'timeoutSeconds'>;
  readonly script: string;
  readonly stdin: string;
  readonly transport: Transport;
}

/**
 * Runs a script and reads its answer. An answer that says no is an answer.
 *
 * @throws TaskError when there is none; none of its text comes from what the script wrote
 */
export async function runTask({ task, script, stdin, transport }: TaskRun): Promise<Answer> {
  const { id, machine, timeoutSeconds } = task;
  try {
    const { stdout } = await transport.run({ machine, script, stdin, timeoutSeconds });
    return parseAnswer(stdout);
  } catch (cause) {
    const reason = cause instanceof MachineError ? cause.reason : 'NoAnswer';
    throw new TaskError(id, reason, cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** The error that an answer is which says no. */
export function refusalOf(
  id: string,
  { reason = 'Failed', message = 'it failed and does not say why' }: Answer,
): TaskError {
  return new TaskError(id, reason, message);
}
