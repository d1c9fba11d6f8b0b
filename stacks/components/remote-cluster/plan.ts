import * as pulumi from '@pulumi/pulumi';
import {
  clusterTasks,
  kubeconfigOf,
  leavesOf,
  type ClusterInput,
  type OutputRef,
  type PlanOptions,
  type Task,
} from '../../../provision';
import type { ObjectKeyRef } from '../../../constructs/kind/reads';
import type { Problem } from '../../../constructs';
import type { RemoteClusterArgs } from './args';
import { propertyPath } from '../bridge/property-path';
import { SSH_KEY, checkedInput, described, invalid, labelOf, type Description } from './description';
import { withLabels, type Labels } from './labels';
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
}

/** Two sets of stand-ins, of which no two are the same. */
type StandIns = 'stand-in' | 'other';

/** Plans with what is known: which tasks there are, and in which order. */
export function outlined(name: string, args: RemoteClusterArgs, standIns: StandIns = 'stand-in'): Planned {
  const description = replaceOutputs(described(args), '', (path) => standIn(path, args, standIns));
  const checked = checkedInput(name, args, description as Description);
  if ('problems' in checked) return checked;
  const { input } = checked;
  const labels = labelsOf(args, input);
  const tasks = clusterTasks(input, planOptions(args)).map((task) => withLabels(task, labels));
  // No machine's label stands in its id: it is the same in every plan of the cluster.
  const kubeconfig = kubeconfigOf(input, planOptions(args));
  return { outline: { tasks, kubeconfig, labels } };
}

/**
 * Completes an outline. Where an Output was given, the plan is made once more inside an Output: that tells what each task does, while the outline
 * told a preview which there are.
 */
export function completed(name: string, args: RemoteClusterArgs, { tasks }: Outline): readonly PlannedTask[] {
  const description = described(args);
  if (!hasOutputs(description)) return tasks.map((task) => ({ task, actual: task }));
  const actual = actualTasks(name, args, description);
  // A preview shows a task in which no Output has a part as it is, though others cannot be known yet.
  const free = pulumi.runtime.isDryRun() ? withoutOutputs(name, args, tasks) : new Set<Task>();
  return tasks.map((task) => ({ task, actual: free.has(task) ? task : carriedOut(task, actual) }));
}

/**
 * The tasks in which no Output has a part: those that are the same whatever stands in for them. To look for the stand-ins would not do: of some
 * a task has no more than a hash.
 */
function withoutOutputs(name: string, args: RemoteClusterArgs, tasks: readonly Task[]): ReadonlySet<Task> {
  const planned = outlined(name, args, 'other');
  if ('problems' in planned) throw invalid(name, planned.problems);
  const others = new Map(planned.outline.tasks.map((task) => [task.id, JSON.stringify(task)]));
  return new Set(tasks.filter((task) => others.get(task.id) === JSON.stringify(task)));
}

/** Pulumi keeps nothing of a Command that failed, and gives a program nothing of what one said in an earlier run. */
const planOptions = (args: RemoteClusterArgs): PlanOptions => ({
  rke: { keepFailedRuns: true, unknownHosts: args.hostKeyChecking === 'skip-insecure' ? 'accept' : 'refuse' },
  server: { isProtected: ({ address }, i) => isProtected(args, [address, args.nodes[i]?.name]) },
});

/** Whether a machine, by its address and its name, may not leave. */
function isProtected(
  { protect = true, removable = [], lost = [] }: RemoteClusterArgs,
  names: readonly unknown[],
): boolean {
  return protect && ![...removable, ...lost].some((machine) => names.includes(machine));
}

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

function carriedOut(task: Task, actual: pulumi.Output<readonly Task[]>): pulumi.Output<Task> {
  return actual.apply((tasks) => {
    const found = tasks.find(({ id }) => id === task.id);
    if (found === undefined) throw new TypeError(`the plan lost its task ${task.id} once all addresses were known`);
    return found;
  });
}

/** A value of the right form that nobody has. Sources: RFC 2606 for names, RFC 5737 for addresses. */
function standIn(path: string, { nodes }: RemoteClusterArgs, standIns: StandIns): string {
  const isOther = standIns === 'other';
  const index = Number(/\d+/.exec(path)?.[0] ?? 0);
  const label = (nodes[index] && labelOf(nodes[index])) ?? `node-${index}`;
  const field = path.slice(path.lastIndexOf('.') + 1);
  if (field === 'hostKey') return `ssh-ed25519 ${(isOther ? 'B' : 'A').repeat(67 - String(index).length)}${index}`;
  if (field === 'internalAddress') return `${isOther ? '198.51.100' : '192.0.2'}.${index + 1}`;
  const owner = path.startsWith('nodes') ? label.replace(/[^a-z0-9-]/g, '-') : `option-${index}`;
  return `${owner}.${path.includes('bastion') ? 'bastion' : 'address'}.${standIns}.invalid`;
}

/** Values that tasks read, or machines are reached with, and nobody gave. */
export function lookupProblems(
  { tasks, labels }: Outline,
  isGiven: (ref: ObjectKeyRef) => boolean,
): readonly Problem[] {
  const problems = tasks.flatMap((task) => [
    ...keysOf(task, labels).map(([ref, machine]) => ({
      ref,
      message: `is missing, and ${machine} is reached with it`,
    })),
    ...secretsOf(task).map((ref) => ({ ref, message: 'is missing, and the options refer to it' })),
  ]);
  const missing = problems
    .filter(({ ref }) => !isGiven(ref))
    .map(({ ref, message }): Problem => ({ path: argumentOf(ref), message }));
  // Of the machines that a key is for, the first is told of.
  return missing.filter(({ path }, i) => missing.findIndex((other) => other.path === path) === i);
}

function secretsOf({ id, stdin = [] }: Task): readonly ObjectKeyRef[] {
  return stdin
    .flatMap(({ from }) => leavesOf(from))
    .flatMap((leaf) => {
      if ('file' in leaf) throw new TypeError(`${id} asks for the file ${leaf.file}, which no component has`);
      return 'secret' in leaf ? [leaf.secret] : [];
    });
}

/** The keys that SSH needs for a task, each with the machine that it opens. */
function keysOf({ machine }: Task, labels: Labels): readonly (readonly [ObjectKeyRef, string])[] {
  if (machine === undefined) return [];
  const label = labels.get(machine.address) ?? machine.address;
  const { sshKey, bastion } = machine;
  return [
    ...(sshKey === undefined ? [] : [[sshKey, label] as const]),
    ...(bastion?.sshKey === undefined ? [] : [[bastion.sshKey, `the bastion of ${label}`] as const]),
  ];
}

/** The argument that a value is looked up in. */
function argumentOf(ref: ObjectKeyRef): string {
  const { namespace = '', name, key } = ref;
  if (namespace === SSH_KEY.namespace && name === SSH_KEY.name) return 'sshKey';
  return `secrets${propertyPath([`${namespace}/${name}`, key])}`;
}
