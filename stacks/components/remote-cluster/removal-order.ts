import type { Source, StdinValue, Task } from '../../../provision';
import { TURN } from '../../../provision/rke2-k3s/change-token';

/** What a removal reads. Nothing of what is taken away depends on how often it was changed before. */
export function removalStdin({ stdin = [], removeReadsStdin = true }: Task): readonly StdinValue[] {
  return removeReadsStdin ? stdin.filter(({ name }) => name !== TURN) : [];
}

/**
 * Which removals must be registered together: by the task before which that happens, the later tasks of the same machine, in the order of the plan.
 *
 * What a later task takes away, an earlier one of the same machine may have begun: a server that was installed and never got ready has joined
 * etcd all the same, and must leave it before it is uninstalled. So all that can be taken off a machine is registered before anything is done
 * to it, as far as the plan's order allows: not if it needs what other machines only do afterwards.
 *
 * @param serves - the machine that a task is there for, if it is one
 */
export function removalsTogether(
  tasks: readonly Task[],
  serves: (task: Task) => string | undefined,
): ReadonlyMap<string, readonly Task[]> {
  const before = ancestors(tasks);
  const together = new Map<string, Task[]>();
  const firsts = new Map<string, Task>();
  for (const task of tasks) {
    const machine = serves(task);
    if (task.remove === undefined || machine === undefined) continue;
    const first = firsts.get(machine);
    if (first === undefined) firsts.set(machine, task);
    else if (needsOnly(task, first)) together.set(first.id, [...(together.get(first.id) ?? []), task]);
  }
  return together;

  /** Whether what a task needs, beyond what its machine's first needs too, is the business of that machine alone. */
  function needsOnly(task: Task, first: Task): boolean {
    const known = before.get(first.id) ?? new Set();
    const byId = new Map(tasks.map((each) => [each.id, each]));
    const own = [...(before.get(task.id) ?? [])].filter((id) => !known.has(id));
    const reads = removalStdin(task).flatMap(({ from }) => tasksRead(from));
    return (
      own.every((id) => serves(byId.get(id) ?? task) === serves(task)) &&
      reads.every((id) => known.has(id) && id !== task.id)
    );
  }
}

/** All tasks that stand before each, directly or not. */
function ancestors(tasks: readonly Task[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const { id, after } of tasks) {
    found.set(id, new Set(after.flatMap((needed) => [needed, ...(found.get(needed) ?? [])])));
  }
  return found;
}

function tasksRead(source: Source): readonly string[] {
  if ('output' in source) return [source.output.task];
  if (!('template' in source)) return [];
  return source.template.flatMap((part) => (typeof part === 'string' ? [] : tasksRead(part)));
}
