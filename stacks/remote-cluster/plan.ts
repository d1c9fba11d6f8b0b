import * as pulumi from '@pulumi/pulumi';
import type { Problem } from '../../constructs';
import type { ObjectKeyRef } from '../../constructs/kind/reads';
import {
  clusterTasks,
  kubeconfigOutput,
  externalSources,
  type ClusterInput,
  type OutputRef,
  type PlanOptions,
  type ValueSource,
  type StdinValue,
  type Task,
} from '../../provision';
import { CHANGE_TOKEN } from '../../provision/rke2-k3s/change-token';
import { propertyPath } from '../bridge/manifest';
import {
  SSH_KEY,
  validateInput,
  describeCluster,
  hasOutputs,
  invalid,
  nodeLabel,
  replaceOutputs,
  type ClusterDescription,
  type RemoteClusterArgs,
} from './args';

/** The tasks of a cluster, with placeholders for Outputs. */
export interface Outline {
  readonly tasks: readonly Task[];
  readonly kubeconfig: OutputRef;
  readonly labels: Labels;
}

/** The label of each machine, which names its resources, by the machine's address. */
type Labels = ReadonlyMap<string, string>;

/** An outline, or the problems with the arguments. */
export type OutlineResult = { readonly outline: Outline } | { readonly problems: readonly Problem[] };

/** Two sets of placeholders that have no value in common. */
type PlaceholderSet = 'stand-in' | 'other';

/** Plans with the values that are known: which tasks there are, and in which order. */
export function planOutline(
  name: string,
  args: RemoteClusterArgs,
  standIns: PlaceholderSet = 'stand-in',
): OutlineResult {
  const description = replaceOutputs(describeCluster(args), '', (path) => placeholder(path, args, standIns));
  const checked = validateInput(name, args, description as ClusterDescription);
  if ('problems' in checked) return checked;
  const { input } = checked;
  const labels = labelsOf(args, input);
  const tasks = clusterTasks(input, planOptions(args)).map((task) => withLabels(task, labels));
  // Its id contains no machine's label, so it is the same in every plan of the cluster.
  const kubeconfig = kubeconfigOutput(input, planOptions(args));
  return { outline: { tasks, kubeconfig, labels } };
}

/** A task as it is planned now, and as it is once every Output is known. */
export interface PlannedTask {
  /** With placeholders for Outputs. Says which tasks there are, and in which order. */
  readonly task: Task;
  /** The same task, as it is executed. */
  readonly actual: pulumi.Input<Task>;
}

/**
 * Completes an outline. If there are Outputs, the plan is computed again within an Output, to learn what each
 * task does; the outline tells a preview which tasks there are.
 */
export function resolveOutline(name: string, args: RemoteClusterArgs, { tasks }: Outline): readonly PlannedTask[] {
  const description = describeCluster(args);
  if (!hasOutputs(description)) return tasks.map((task) => ({ task, actual: task }));
  const actual = actualTasks(name, args, description);
  // A preview shows a task without Outputs as it is, even if other tasks are not known yet.
  const free = pulumi.runtime.isDryRun() ? tasksWithoutOutputs(name, args, tasks) : new Set<Task>();
  return tasks.map((task) => ({ task, actual: free.has(task) ? task : resolvedTask(task, actual) }));
}

/**
 * The tasks that depend on no Output: those that are the same with either set of placeholders. Searching for
 * the placeholders would not find all: a task may contain only a hash of one.
 */
function tasksWithoutOutputs(name: string, args: RemoteClusterArgs, tasks: readonly Task[]): ReadonlySet<Task> {
  const planned = planOutline(name, args, 'other');
  if ('problems' in planned) throw invalid(name, planned.problems);
  const others = new Map(planned.outline.tasks.map((task) => [task.id, JSON.stringify(task)]));
  return new Set(tasks.filter((task) => others.get(task.id) === JSON.stringify(task)));
}

/**
 * Options of the plans, for Pulumi: it keeps nothing of a Command that failed, and a program cannot read a
 * Command's output of an earlier run.
 */
const planOptions = (args: RemoteClusterArgs): PlanOptions => ({
  rke: { keepFailedRuns: true, unknownHosts: args.hostKeyChecking === 'skip-insecure' ? 'accept' : 'refuse' },
  server: { isProtected: ({ address }, i) => isProtected(args, [address, args.nodes[i]?.name]) },
});

/** Whether a machine, given by its address and its name, may not be removed. */
function isProtected(
  { protect = true, removable = [], lost = [] }: RemoteClusterArgs,
  names: readonly unknown[],
): boolean {
  return protect && ![...removable, ...lost].some((machine) => names.includes(machine));
}

function labelsOf(args: RemoteClusterArgs, input: ClusterInput): Labels {
  return new Map(
    input.nodes.map(({ address }, i) => [address, (args.nodes[i] && nodeLabel(args.nodes[i])) ?? address]),
  );
}

function actualTasks(name: string, args: RemoteClusterArgs, description: ClusterDescription) {
  return pulumi.output(description).apply((known): readonly Task[] => {
    const checked = validateInput(name, args, known);
    if ('problems' in checked) throw invalid(name, checked.problems);
    const labels = labelsOf(args, checked.input);
    return clusterTasks(checked.input, planOptions(args)).map((task) => withLabels(task, labels));
  });
}

function resolvedTask(task: Task, actual: pulumi.Output<readonly Task[]>): pulumi.Output<Task> {
  return actual.apply((tasks) => {
    const found = tasks.find(({ id }) => id === task.id);
    if (found === undefined) throw new TypeError(`the plan lost its task ${task.id} once all addresses were known`);
    return found;
  });
}

/** A reserved value of the right form. Sources: RFC 2606 for names, RFC 5737 for addresses. */
function placeholder(path: string, { nodes }: RemoteClusterArgs, standIns: PlaceholderSet): string {
  const isOther = standIns === 'other';
  const index = Number(/\d+/.exec(path)?.[0] ?? 0);
  const label = (nodes[index] && nodeLabel(nodes[index])) ?? `node-${index}`;
  const field = path.slice(path.lastIndexOf('.') + 1);
  if (field === 'hostKey') return `ssh-ed25519 ${(isOther ? 'B' : 'A').repeat(67 - String(index).length)}${index}`;
  if (field === 'internalAddress') return `${isOther ? '198.51.100' : '192.0.2'}.${index + 1}`;
  const owner = path.startsWith('nodes') ? label.replace(/[^a-z0-9-]/g, '-') : `option-${index}`;
  return `${owner}.${path.includes('bastion') ? 'bastion' : 'address'}.${standIns}.invalid`;
}

/**
 * Problems with values that are missing: those that tasks read, and those with which SSH reaches machines.
 */
export function unresolvedSecretProblems(
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
  // If a key is for several machines, only the first is reported.
  return missing.filter(({ path }, i) => missing.findIndex((other) => other.path === path) === i);
}

function secretsOf({ id, stdin = [] }: Task): readonly ObjectKeyRef[] {
  return stdin
    .flatMap(({ from }) => externalSources(from))
    .flatMap((leaf) => {
      if ('file' in leaf) throw new TypeError(`${id} asks for the file ${leaf.file}, which no component has`);
      return 'secret' in leaf ? [leaf.secret] : [];
    });
}

/** The keys that SSH needs for a task, each with the machine that it is for. */
function keysOf({ machine }: Task, labels: Labels): readonly (readonly [ObjectKeyRef, string])[] {
  if (machine === undefined) return [];
  const label = JSON.stringify(labels.get(machine.address) ?? machine.address);
  const { sshKey, bastion } = machine;
  return [
    ...(sshKey === undefined ? [] : [[sshKey, label] as const]),
    ...(bastion?.sshKey === undefined ? [] : [[bastion.sshKey, `the bastion of ${label}`] as const]),
  ];
}

/** The path of the argument that should contain a value. */
function argumentOf(ref: ObjectKeyRef): string {
  const { namespace = '', name, key } = ref;
  if (namespace === SSH_KEY.namespace && name === SSH_KEY.name) return 'sshKey';
  return `secrets${propertyPath([`${namespace}/${name}`, key])}`;
}

/** A task's id with the machine's label in place of its address: `10.0.0.1/server` or `first/server`. */
function replaceAddress(id: string, labels: Labels): string {
  const end = id.lastIndexOf('/');
  const label = end < 0 ? undefined : labels.get(id.slice(0, end));
  return label === undefined ? id : `${label}${id.slice(end)}`;
}

/**
 * The label of the machine that a task serves, whether it runs there or not. Undefined if it serves all
 * machines.
 */
export function servedLabel(task: Task, labels: Labels): string | undefined {
  const end = task.id.lastIndexOf('/');
  const label = end < 0 ? undefined : task.id.slice(0, end);
  return [...labels.values()].find((known) => known === label);
}

/**
 * A task with labels in its id and references, so that these are the same whether its address was known or
 * not.
 */
function withLabels(task: Task, labels: Labels): Task {
  return {
    ...task,
    id: replaceAddress(task.id, labels),
    after: task.after.map((id) => replaceAddress(id, labels)),
    ...(task.stdin === undefined
      ? {}
      : { stdin: task.stdin.map((value) => ({ ...value, from: sourceWithLabels(value.from, labels) })) }),
  };
}

function sourceWithLabels(source: ValueSource, labels: Labels): ValueSource {
  if ('output' in source) return { output: { ...source.output, task: replaceAddress(source.output.task, labels) } };
  if (!('template' in source)) return source;
  return {
    template: source.template.map((part) => (typeof part === 'string' ? part : sourceWithLabels(part, labels))),
  };
}

/**
 * The values that a removal reads. It needs no change token: a removal does not depend on earlier changes.
 */
export function removalStdin({ stdin = [], removeReadsStdin = true }: Task): readonly StdinValue[] {
  return removeReadsStdin ? stdin.filter(({ name }) => name !== CHANGE_TOKEN) : [];
}

/**
 * The removals that must be registered together: the later tasks of a machine, in the order of the plan, by
 * the machine's first task, before which their removals are registered.
 *
 * A later task may remove what an earlier task of the same machine began: a server that was installed but
 * never became ready may have joined etcd, and must leave it before it is uninstalled. So all removals of a
 * machine are registered before its first task runs, as far as the plan's order allows: a removal that needs
 * later tasks of other machines is not.
 *
 * @param serves - the machine that a task serves, if it serves a single one
 */
export function groupRemovals(
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

  /**
   * Whether everything that a task needs, beyond what its machine's first task needs, serves that machine
   * alone.
   */
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

/** The ids of all tasks that come before each task, directly or indirectly. */
function ancestors(tasks: readonly Task[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const { id, after } of tasks) {
    found.set(id, new Set(after.flatMap((needed) => [needed, ...(found.get(needed) ?? [])])));
  }
  return found;
}

function tasksRead(source: ValueSource): readonly string[] {
  if ('output' in source) return [source.output.task];
  if (!('template' in source)) return [];
  return source.template.flatMap((part) => (typeof part === 'string' ? [] : tasksRead(part)));
}
