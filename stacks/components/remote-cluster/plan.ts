import * as pulumi from '@pulumi/pulumi';
import { clusterTasks, kubeconfigOf, leavesOf } from '../../../constructs/provision';
import type { ClusterInput, OutputRef, PlanOptions, Task } from '../../../constructs/provision';
import type { ObjectKeyRef } from '../../../constructs/core/reads';
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

/** What can be planned now, or why nothing can. */
export type Planned = { readonly outline: Outline } | { readonly problems: readonly Problem[] };

/** The tasks, with stand-ins where Outputs were given. */
export interface Outline {
  readonly tasks: readonly Task[];
  readonly kubeconfig: OutputRef;
  readonly labels: Labels;
  /** The stand-ins. */
  readonly standIns: readonly string[];
}

/** Plans with what is known: which tasks there are, and in which order. */
export function outlined(name: string, args: RemoteClusterArgs): Planned {
  const standIns: string[] = [];
  const description = replaceOutputs(described(args), '', (path) => {
    const value = standIn(path, args);
    standIns.push(value);
    return value;
  });
  const checked = checkedInput(name, args, description as Description);
  if ('problems' in checked) return checked;
  const { input } = checked;
  const labels = labelsOf(args, input);
  const tasks = clusterTasks(input, planOptions(args)).map((task) => withLabels(task, labels));
  // No machine's label stands in its id: it is the same in every plan of the cluster.
  const kubeconfig = kubeconfigOf(input, planOptions(args));
  return { outline: { tasks, kubeconfig, labels, standIns } };
}

/**
 * Completes an outline. Where an Output was given, the plan is made once more inside an Output: that tells what each task does, while the outline
 * told a preview which there are.
 */
export function completed(name: string, args: RemoteClusterArgs, { tasks, standIns }: Outline): readonly PlannedTask[] {
  const description = described(args);
  const actual = hasOutputs(description) ? actualTasks(name, args, description) : undefined;
  return tasks.map((task) => ({ task, actual: carriedOut(task, actual, standIns) }));
}

/** Pulumi keeps nothing of a Command that failed, and gives a program nothing of what one said in an earlier run. */
const planOptions = ({ hostKeyChecking }: RemoteClusterArgs): PlanOptions => ({
  rke: { keepFailedRuns: true, unknownHosts: hostKeyChecking === 'skip-insecure' ? 'accept' : 'refuse' },
});

function labelsOf(args: RemoteClusterArgs, input: ClusterInput): Labels {
  return new Map(input.nodes.map(({ address }, i) => [address, (args.nodes[i] && labelOf(args.nodes[i])) ?? address]));
}

function actualTasks(name: string, args: RemoteClusterArgs, description: Description) {
  return pulumi.output(description).apply((known): readonly Task[] => {
    const checked = checkedInput(name, args, known);
    if ('problems' in checked) throw invalid(name, checked.problems);
    const labels = labelsOf(args, checked.input);
    return clusterTasks(checked.input, planOptions(args)).map((task) => withLabels(task, labels));
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

/** Values that tasks read and nobody gave. */
export function lookupProblems({ tasks }: Outline, isGiven: (ref: ObjectKeyRef) => boolean): readonly Problem[] {
  const paths = tasks.flatMap(({ id, stdin = [] }) =>
    stdin
      .flatMap(({ from }) => leavesOf(from))
      .flatMap((leaf): string[] => {
        if ('file' in leaf) throw new TypeError(`${id} asks for the file ${leaf.file}, which no component has`);
        if (!('secret' in leaf) || isGiven(leaf.secret)) return [];
        const { namespace = '', name, key } = leaf.secret;
        return [`secrets["${namespace}/${name}"].${key}`];
      }),
  );
  return [...new Set(paths)].map((path) => ({ path, message: 'is missing, and the options refer to it' }));
}
