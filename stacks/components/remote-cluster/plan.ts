import * as pulumi from '@pulumi/pulumi';
import { clusterTasks, kubeconfigOf, leavesOf } from '../../../constructs/provision';
import type { ClusterInput, OutputRef, Task } from '../../../constructs/provision';
import type { Problem } from '../../../constructs';
import type { RemoteClusterArgs } from './args';
import { checkedInput, described, invalid, labelOf } from './description';
import type { Description } from './description';
import { withLabels } from './labels';
import type { Labels } from './labels';
import { hasOutputs, replaceOutputs } from './outputs';

/** A task, and what it will be once every Output is known. */
export interface PlannedTask {
  /** With stand-ins where Outputs were given. Says which tasks there are, and in which order. */
  readonly task: Task;
  /** The same task, as it is carried out. */
  readonly actual: pulumi.Input<Task>;
}

/** A cluster's tasks, before all is known of its machines. Ids bear labels. */
export interface ClusterPlan {
  readonly tasks: readonly PlannedTask[];
  readonly kubeconfig: OutputRef;
  readonly labels: Labels;
}

/** A plan, or why there is none. */
export type Planned = { readonly plan: ClusterPlan } | { readonly problems: readonly Problem[] };

/**
 * Plans with what is known. Where an Output was given, the plan is made twice: now with a stand-in, which tells the tasks and their order, so that
 * a preview shows all of them; and again inside an Output, which tells what each of them does.
 */
export function planCluster(name: string, args: RemoteClusterArgs): Planned {
  const description = described(args);
  const used: string[] = [];
  const standing = replaceOutputs(description, '', (path) => {
    const value = standIn(path, args);
    used.push(value);
    return value;
  }) as Description;
  const checked = checkedInput(name, args, standing);
  if ('problems' in checked) return checked;
  const { input } = checked;
  const labels = labelsOf(args, input);
  const tasks = clusterTasks(input).map((task) => withLabels(task, labels));
  const kubeconfig = withLabels(kubeconfigTask(input), labels).id;
  const actual = hasOutputs(description) ? actualTasks(name, args, description) : undefined;
  return {
    plan: {
      labels,
      kubeconfig: { task: kubeconfig, name: kubeconfigOf(input).name },
      tasks: tasks.map((task) => ({ task, actual: carriedOut(task, actual, used) })),
    },
  };
}

function kubeconfigTask(input: ClusterInput): Task {
  const { task: id } = kubeconfigOf(input);
  const task = clusterTasks(input).find((other) => other.id === id);
  if (task === undefined)
    throw new TypeError(`the plan of ${input.name} names ${id} for the kubeconfig and has no such task`);
  return task;
}

function labelsOf(args: RemoteClusterArgs, input: ClusterInput): Labels {
  return new Map(input.nodes.map(({ address }, i) => [address, (args.nodes[i] && labelOf(args.nodes[i])) ?? address]));
}

function actualTasks(name: string, args: RemoteClusterArgs, description: Description) {
  return pulumi.output(description).apply((known): readonly Task[] => {
    const checked = checkedInput(name, args, known);
    if ('problems' in checked) throw invalid(name, checked.problems);
    const labels = labelsOf(args, checked.input);
    return clusterTasks(checked.input).map((task) => withLabels(task, labels));
  });
}

/** A preview shows a task in which no Output has a part as it is, though others cannot be known yet. */
function carriedOut(
  task: Task,
  actual: pulumi.Output<readonly Task[]> | undefined,
  used: readonly string[],
): pulumi.Input<Task> {
  if (actual === undefined) return task;
  const text = JSON.stringify(task);
  if (pulumi.runtime.isDryRun() && !used.some((value) => text.includes(value))) return task;
  return actual.apply((tasks) => {
    const found = tasks.find(({ id }) => id === task.id);
    if (found === undefined) throw new TypeError(`the plan lost its task ${task.id} once all addresses were known`);
    return found;
  });
}

/** A value of the right form that nobody has. Sources: RFC 2606 for names, RFC 5737 for addresses. */
function standIn(path: string, { nodes }: RemoteClusterArgs): string {
  const index = Number(/\d+/.exec(path)?.[0] ?? 0);
  const label = (nodes[index] && labelOf(nodes[index])) ?? `node-${index}`;
  const field = path.slice(path.lastIndexOf('.') + 1);
  if (field === 'hostKey') return `ssh-ed25519 ${'A'.repeat(67 - String(index).length)}${index}`;
  if (field === 'internalAddress') return `192.0.2.${index + 1}`;
  const owner = path.startsWith('nodes') ? label.replace(/[^a-z0-9-]/g, '-') : `option-${index}`;
  return `${owner}.${path.includes('bastion') ? 'bastion' : 'address'}.stand-in.invalid`;
}

/** Values that tasks read and nobody gave, and outputs of machines that are gone. */
export function lookupProblems(
  { tasks }: ClusterPlan,
  isGiven: (ref: { readonly namespace?: string; readonly name: string; readonly key: string }) => boolean,
  isSkipped: (task: Task) => boolean,
): readonly Problem[] {
  const byId = new Map(tasks.map(({ task }) => [task.id, task]));
  const problems = tasks.flatMap(({ task }) =>
    (task.stdin ?? [])
      .flatMap(({ from }) => leavesOf(from))
      .flatMap((leaf): Problem[] => {
        if ('file' in leaf) throw new TypeError(`${task.id} asks for the file ${leaf.file}, which no component has`);
        if ('secret' in leaf) {
          const { namespace = '', name, key } = leaf.secret;
          const path = `secrets["${namespace}/${name}"].${key}`;
          return isGiven(leaf.secret) ? [] : [{ path, message: 'is missing, and the options refer to it' }];
        }
        const source = byId.get(leaf.output.task);
        if (source === undefined)
          throw new TypeError(`${task.id} asks for an output of ${leaf.output.task}, which is no task`);
        const message =
          `cannot have ${source.machine?.address ?? ''} in it: the other machines need its "${leaf.output.name}" ` +
          '. Put another server first in nodes';
        return isSkipped(source) && !isSkipped(task) ? [{ path: 'lost', message }] : [];
      }),
  );
  const seen = new Set<string>();
  return problems.filter(({ path, message }) => !seen.has(path + message) && seen.add(path + message));
}
