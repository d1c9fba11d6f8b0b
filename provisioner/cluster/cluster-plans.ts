import { LOST_MACHINES_ANNOTATION } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ApiClient } from '../../operator/client/api-client';
import { PlanError, RunInterruptedError, type PlanResult, type PlanRun } from '../../operator/effects/plan-runner';
import { truncate } from '../../operator/process/truncate';
import { remainingMembers, removalFacts, type ClusterInput, type Node, type RemovalFacts } from '../../provision';
import { SshTransport } from '../ssh/ssh-transport';
import { executePlan, type ExecutePlanResult, type TaskEvent } from '../tasks/execute-plan';
import { LocalTransport } from '../tasks/local-transport';
import type { TaskError, TaskRecord } from '../tasks/task-record';
import { MachineTransport, type Transport } from '../tasks/transport';
import { ClusterState, fileLookup, pinHostKeysOfSpec, recordsOf } from './cluster-state';
import { readDesiredCluster, type DesiredCluster } from './desired-cluster';
import { putKubeconfig } from './secrets';

/** Options of {@link applyCluster} and {@link removeCluster}. */
export interface ClusterPlanOptions {
  readonly client: ApiClient;
  /** Namespace of the Secrets with kubeconfigs. */
  readonly namespace: string;
  /** Trust the first host key of a machine whose spec gives none, and pin it. */
  readonly trustOnFirstUse: boolean;
  /**
   * Directory for key files while a script runs; best in memory.
   * @default the system's temporary directory
   */
  readonly folder?: string;
  /** Directory whose files specs may name. @default none */
  readonly configDir?: string;
  /** Runs the scripts. @default SSH, and a local shell for scripts without a machine */
  readonly transport?: Transport;
  readonly onWarning: (message: string) => void;
}

/**
 * Reconciles a cluster with its spec: executes the tasks that changed since they last succeeded.
 *
 * @throws PlanError with the first task's reason; RunInterruptedError
 */
export async function applyCluster(run: PlanRun, options: ClusterPlanOptions): Promise<PlanResult> {
  const state = new ClusterState(run.values);
  const wanted = await readDesiredCluster(run, lastAppliedInput(state), options);
  const nodes = new ClusterNodes(wanted.nodes, nodesOf(run.object));
  const status = (): Readonly<Record<string, unknown>> => ({ nodes: nodes.list() });
  run.report({ message: `${wanted.plan.length} tasks to look at.`, status: status() });
  await state.assertFits(wanted);
  // Before the first task: the removal needs these texts, and their source may be deleted by then.
  await state.putTexts(wanted.texts);
  await pinHostKeysOfSpec(run.object, wanted.plan, state);
  const facts = wanted.input === undefined ? {} : removalFacts(wanted.input);
  const { records, changed } = await executeClusterPlan(run, options, state, { ...wanted, facts }, nodes);
  if (wanted.input !== undefined) await state.putApplied(wanted.input);
  const text = kubeconfigText(records, wanted);
  const { namespace } = options;
  const kubeconfigRef = await putKubeconfig(options.client, run.object, {
    namespace,
    text,
    retain: isRetained(run.object),
  });
  nodes.setAllReady(wanted.nodes, wanted.version);
  return {
    message: changed.length === 0 ? 'Every machine was as it should be.' : `${changed.length} tasks changed something.`,
    status: { ...status(), appliedConfig: wanted.appliedConfig, kubeconfigRef },
  };
}

/**
 * Removes a cluster: runs the removal of every recorded task, in reverse order.
 *
 * @throws PlanError with the first task's reason; RunInterruptedError
 */
export async function removeCluster(run: PlanRun, options: ClusterPlanOptions): Promise<PlanResult> {
  const state = new ClusterState(run.values);
  const nodes = new ClusterNodes([], nodesOf(run.object));
  const wanted = { plan: [], texts: state.texts, nodes: [], facts: { whole: 'yes' } };
  const { changed } = await executeClusterPlan(run, options, state, wanted, nodes);
  await state.putApplied(undefined);
  await state.putTexts({});
  return { message: `${changed.length} tasks took something away.`, status: { nodes: [] } };
}

/** Whether the state and the kubeconfig are kept when the Cluster is deleted. */
export function isRetained({ spec }: KubeObject): boolean {
  return (spec as { readonly deletionPolicy?: string } | undefined)?.deletionPolicy === 'Retain';
}

/** The input applied last, with only those machines that are certainly still members. */
function lastAppliedInput({ applied, records }: ClusterState): ClusterInput | undefined {
  const members = records.find(({ task }) => task.id === 'members')?.task;
  return applied === undefined ? undefined : { ...applied, nodes: remainingMembers(applied.nodes, members) };
}

async function executeClusterPlan(
  run: PlanRun,
  options: ClusterPlanOptions,
  state: ClusterState,
  {
    plan,
    texts,
    nodes: wanted,
    facts,
  }: Pick<DesiredCluster, 'plan' | 'texts' | 'nodes'> & { readonly facts: RemovalFacts },
  nodes: ClusterNodes,
): Promise<ExecutePlanResult> {
  const lost = lostMachines(run, wanted);
  const onEvent = (event: TaskEvent): void => {
    nodes.onTaskEvent(event);
    const { task, action, phase, message } = event;
    if (phase === 'skipped') run.warn({ reason: 'MachineLost', message: `${task.id}: ${message ?? ''}` });
    const what = action === 'remove' ? `taking away: ${task.description}` : task.description;
    const text = phase === 'failed' ? `${task.id} failed: ${message ?? ''}` : `${task.id}: ${what}`;
    run.report({ message: text, status: { nodes: nodes.list() }, event: phase === 'started' });
  };
  const end = await executePlan({
    plan,
    previous: recordsOf(run, plan, state, options.trustOnFirstUse),
    transport: withAbortSignal(transportOf(run, options, state), run.timeout),
    lookup: {
      secret: run.secret,
      file: fileLookup(run, texts, state),
    },
    // Called before and after each task, so a run that may not continue starts no further task.
    save: async (records) => {
      await state.putRecords(records);
      run.assertMayContinue();
    },
    signal: run.stop,
    removalValues: Object.entries(facts).map(([name, value]) => ({ name, value: String(value) })),
    isLost: ({ address }) => lost.has(address),
    onEvent,
  });
  nodes.dropRemoved(end.records);
  const [first, ...others] = end.errors;
  if (first !== undefined) {
    const message = [first, ...others]
      .map((error) => `${error.message}${adviceFor(error, plan, run, state)}`)
      .join('; ');
    throw new PlanError(first.reason, message, { status: { nodes: nodes.list() }, cause: first });
  }
  if (!end.complete) throw new RunInterruptedError('The operator stopped; the run goes on where it was.');
  return end;
}

/** Machines that a user has declared lost for good. @throws PlanError when the spec still has one of them */
function lostMachines({ object, run }: PlanRun, wanted: readonly { readonly address: string }[]): ReadonlySet<string> {
  const lost = new Set((run.input['lost'] as readonly string[] | undefined) ?? []);
  const both = wanted.filter(({ address }) => lost.has(address)).map(({ address }) => address);
  if (both.length === 0) return lost;
  const message =
    `the annotation ${LOST_MACHINES_ANNOTATION} of Cluster ${object.metadata.name} says that ${both.join(', ')} is gone for good, ` +
    'but the spec has it. Take it out of one of the two';
  throw new PlanError('ErrInvalidConfig', message, { isTerminal: true });
}

/** A machine that left the spec and cannot be reached may be lost for good, which only a user can know. */
function adviceFor(
  { task, reason }: TaskError,
  plan: DesiredCluster['plan'],
  { object }: PlanRun,
  { records }: ClusterState,
): string {
  const machine = records.find((record) => record.task.id === task)?.task.machine;
  if (machine === undefined || reason !== 'Unreachable' || plan.some(({ id }) => id === task)) return '';
  return (
    `. It is no longer in the spec. If it is gone for good, say so: kubectl annotate cluster ${object.metadata.name} ` +
    `${LOST_MACHINES_ANNOTATION}=${machine.address}`
  );
}

function transportOf(run: PlanRun, options: ClusterPlanOptions, state: ClusterState): Transport {
  if (options.transport !== undefined) return options.transport;
  const ssh = new SshTransport({
    privateKey: async ({ address, sshKey }) => {
      if (sshKey !== undefined) return run.secret(sshKey);
      throw new PlanError('ErrNotFound', `no SSH key is named for ${address}; set spec.sshKeySecretRef`, {
        isTerminal: true,
      });
    },
    ...(options.trustOnFirstUse ? { trustOnFirstUse: state.hostKeys } : {}),
    ...(options.folder === undefined ? {} : { folder: options.folder }),
    onWarning: options.onWarning,
  });
  return new MachineTransport(ssh, new LocalTransport());
}

/** Aborts the running script when the run times out. */
function withAbortSignal(transport: Transport, timeout: AbortSignal): Transport {
  return { run: (request) => transport.run({ ...request, signal: timeout }) };
}

function kubeconfigText(records: readonly TaskRecord[], { kubeconfig }: DesiredCluster): string {
  const record = records.find(({ task }) => task.id === kubeconfig.task);
  const value = record?.outputs[kubeconfig.name];
  if (value === undefined) {
    throw new PlanError('ErrNoKubeconfig', `${kubeconfig.task} ended well but gave no ${kubeconfig.name}`);
  }
  return Buffer.from(value, 'base64').toString('utf8');
}

/**
 * Longest message of a node, in characters. The schema takes more, but an object with many nodes must fit
 * into etcd.
 */
const MAX_MESSAGE = 1024;

/** One entry of `status.nodes`. */
interface NodeStatus {
  readonly address: string;
  readonly roles?: readonly string[];
  readonly state: 'Pending' | 'Provisioning' | 'Ready' | 'Failed' | 'Removing' | 'Removed';
  readonly version?: string;
  readonly message?: string;
}

/**
 * Tracks `status.nodes` as tasks start and end. A task belongs to the machine whose address its id starts
 * with.
 *
 * @testonly
 */
export class ClusterNodes {
  private readonly nodes: Map<string, NodeStatus>;
  private readonly wanted: ReadonlySet<string>;

  /** @param before - existing entries: nodes that left the spec are shown until they are removed */
  constructor(wanted: readonly Pick<Node, 'address' | 'roles'>[], before: readonly NodeStatus[]) {
    this.wanted = new Set(wanted.map(({ address }) => address));
    const known = new Map(before.map((node) => [node.address, node]));
    const entries = wanted.map(({ address, roles }): NodeStatus => {
      const { state = 'Pending', version } = known.get(address) ?? {};
      return { address, roles, state, ...(version === undefined ? {} : { version }) };
    });
    const leaving = before.filter(({ address }) => !this.wanted.has(address));
    this.nodes = new Map([...entries, ...leaving].map((node) => [node.address, node]));
  }

  /** Updates the node of a task. */
  onTaskEvent({ task, action, phase, message }: TaskEvent): void {
    const node = this.nodes.get(addressOf(task.id));
    if (node === undefined) return;
    const { address, roles, version } = node;
    const rest = { address, ...(roles && { roles }), ...(version !== undefined && { version }) };
    const text = phase === 'failed' ? message : task.description;
    const told = text === undefined ? {} : { message: truncate(text, MAX_MESSAGE) };
    if (phase === 'failed') this.set({ ...rest, state: 'Failed', ...told });
    // Success is not shown: the next task starts at once.
    else if (phase === 'started')
      this.set({ ...rest, state: action === 'remove' ? 'Removing' : 'Provisioning', ...told });
  }

  /** Marks every wanted node as ready, and drops all others. */
  setAllReady(wanted: readonly Pick<Node, 'address' | 'roles'>[], version: string | undefined): void {
    this.nodes.clear();
    const rest = version === undefined ? {} : { version };
    for (const { address, roles } of wanted) this.set({ address, roles, state: 'Ready', ...rest });
  }

  /** Drops nodes that are not wanted and have no task left. */
  dropRemoved(records: readonly TaskRecord[]): void {
    const left = new Set(records.map(({ task }) => addressOf(task.id)));
    for (const address of this.nodes.keys()) {
      if (!this.wanted.has(address) && !left.has(address)) this.nodes.delete(address);
    }
  }

  list(): readonly NodeStatus[] {
    return [...this.nodes.values()];
  }

  private set(node: NodeStatus): void {
    this.nodes.set(node.address, node);
  }
}

function nodesOf({ status }: KubeObject): readonly NodeStatus[] {
  return (status as { readonly nodes?: readonly NodeStatus[] } | undefined)?.nodes ?? [];
}

function addressOf(taskId: string): string {
  return taskId.slice(0, Math.max(taskId.lastIndexOf('/'), 0));
}
