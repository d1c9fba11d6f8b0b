import { outputText } from '../../../provision/task/script-io';
import type { Answer, OutputRef, Task } from '../../../provision/task/task';
import type { CarryOutContext, TaskEvent } from './carry-out';
import { refusalOf, runTask } from './run-task';
import { TaskError } from './task-error';
import { taskInput, type TaskInput } from './task-input';
import { recordable, type TaskRecords } from './task-record';

/** Applies a task unless it stands as it should. @throws TaskError */
export async function applyTask(task: Task, context: CarryOutContext): Promise<void> {
  const { known, save } = context;
  const before = known.get(task.id);
  const input = await inputOf(task, task.apply, context);
  const outputs = before?.outputs ?? {};
  if (before?.inputHash === input.hash && hasAll(task, outputs)) {
    // Its way of being removed, its machine's host key and the like may be other than they were.
    if (JSON.stringify(before.task) === JSON.stringify(recordable(task))) return;
    known.set({ ...before, task: recordable(task) });
    return save(known.list());
  }
  known.set({ task: recordable(task), outputs });
  await save(known.list());
  const answer = await reported(task, 'apply', context, () =>
    runTask({ task, script: task.apply, stdin: input.stdin, transport: context.transport }),
  );
  const all = { ...outputs, ...declared(task, answer) };
  const done = answer.ok && hasAll(task, all);
  known.set({ task: recordable(task), outputs: all, ...(done && { inputHash: input.hash }) });
  await save(known.list());
  if (!answer.ok) throw refusalOf(task.id, answer);
  if (!done)
    throw new TaskError(task.id, 'NoAnswer', `its answer lacks one of its outputs: ${(task.outputs ?? []).join(', ')}`);
}

/** Looks up what a script reads. @throws TaskError when something cannot be had */
export async function inputOf(
  { id, stdin = [] }: Pick<Task, 'id' | 'stdin'>,
  script: string,
  { lookup, known }: CarryOutContext,
): Promise<TaskInput> {
  try {
    return await taskInput(script, stdin, lookup, (ref) => {
      // Its own, from a run before: the first one has none.
      if (ref.task === id && known.get(id)?.outputs[ref.name] === undefined) return '';
      return outputOf(known, ref);
    });
  } catch (cause) {
    throw new TaskError(id, 'ValueMissing', cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** Runs a script and tells about it: that it starts, and how it ended. An answer that says no is returned as well. */
export async function reported(
  task: Omit<Task, 'apply'>,
  action: TaskEvent['action'],
  { onEvent, ran, changed }: CarryOutContext,
  run: () => Promise<Answer>,
): Promise<Answer> {
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
    tell('failed', { message: error instanceof Error ? error.message : String(error) });
    throw error;
  } finally {
    ran.push(task.id);
  }
}

/** What a machine gives besides is nobody's, and would only fill the state. */
function declared({ outputs = [] }: Task, answer: Answer): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(answer.outputs ?? {}).filter(([name]) => outputs.includes(name)));
}

function hasAll({ outputs = [] }: Task, given: Readonly<Record<string, string>>): boolean {
  return outputs.every((name) => given[name] !== undefined);
}

function outputOf(known: TaskRecords, { task, name }: OutputRef): string {
  const record = known.get(task);
  const text = record && outputText({ ok: true, changed: false, outputs: record.outputs }, name);
  if (text === undefined) throw new RangeError(`the task ${task} has not given its output ${name} yet`);
  return text;
}
