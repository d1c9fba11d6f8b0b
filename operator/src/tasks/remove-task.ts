import { inputOf, reported } from './apply-task';
import type { CarryOutContext } from './carry-out';
import { refusalOf, runTask } from './run-task';
import type { TaskRecord } from './task-record';

/** Takes away what a task brought about, and forgets it. @throws TaskError */
export async function removeTask({ task }: TaskRecord, context: CarryOutContext): Promise<void> {
  const { known, save, transport } = context;
  const { remove } = task;
  if (remove !== undefined) {
    const reads = task.removeReadsStdin === false ? { id: task.id } : { id: task.id, stdin: task.stdin ?? [] };
    const { stdin } = await inputOf(reads, remove, context);
    const answer = await reported(task, 'remove', context, () => runTask({ task, script: remove, stdin, transport }));
    if (!answer.ok) throw refusalOf(task.id, answer);
  }
  known.delete(task.id);
  await save(known.list());
}
