import type { Source, Task } from '../../../provision';

/** What each machine's resources are named by, by the machine's address. */
export type Labels = ReadonlyMap<string, string>;

/** A task's id with the machine's label in place of its address: `10.0.0.1/server` or `first/server`. */
function labelled(id: string, labels: Labels): string {
  const end = id.lastIndexOf('/');
  const label = end < 0 ? undefined : labels.get(id.slice(0, end));
  return label === undefined ? id : `${label}${id.slice(end)}`;
}

/** The label of the machine that a task serves, be it the one that it runs on or not. Undefined for what serves all. */
export function servedLabel(task: Task, labels: Labels): string | undefined {
  const end = task.id.lastIndexOf('/');
  const label = end < 0 ? undefined : task.id.slice(0, end);
  return [...labels.values()].find((known) => known === label);
}

/** A task whose id and references bear labels. With it, tasks that were planned with and without knowing an address are the same. */
export function withLabels(task: Task, labels: Labels): Task {
  return {
    ...task,
    id: labelled(task.id, labels),
    after: task.after.map((id) => labelled(id, labels)),
    ...(task.stdin === undefined
      ? {}
      : { stdin: task.stdin.map((value) => ({ ...value, from: sourceWithLabels(value.from, labels) })) }),
  };
}

function sourceWithLabels(source: Source, labels: Labels): Source {
  if ('output' in source) return { output: { ...source.output, task: labelled(source.output.task, labels) } };
  if (!('template' in source)) return source;
  return {
    template: source.template.map((part) => (typeof part === 'string' ? part : sourceWithLabels(part, labels))),
  };
}
