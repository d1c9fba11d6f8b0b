import { stdinText } from '../../../provision/task/script-io';
import { inputOf, reported } from './apply-task';
import type { CarryOutContext } from './carry-out';
import { refusalOf, runTask } from './run-task';
import type { TaskRecord } from './task-record';

/** Takes away what a task brought about, and forgets it. @throws TaskError */
export async function removeTask({ task }: TaskRecord, context: CarryOutContext): Promise<void> {
  const { known, save, transport, removalValues = [], isLost, onEvent } = context;
  const { remove } = task;
  if (remove !== undefined && task.machine !== undefined && isLost?.(task.machine) === true) {
    const { id, description } = task;
    const message = `${task.machine.address} is gone for good, so nothing was removed there`;
    onEvent?.({ task: { id, description }, action: 'remove', phase: 'skipped', message });
  } else if (remove !== undefined) {
    const reads = task.removeReadsStdin === false ? { id: task.id } : { id: task.id, stdin: task.stdin ?? [] };
    const { stdin } = await inputOf(reads, remove, context);
    const all = `${stdin}${stdinText(removalValues)}`;
    const answer = await reported(task, 'remove', context, () =>
      runTask({ task, script: remove, stdin: all, transport }),
    );
    if (!answer.ok) throw refusalOf(task.id, answer);
  }
  known.delete(task.id);
  await save(known.list());
}
