import type { KubeObject } from '../../../constructs/core/kube-object';
import type { ApiClient } from '../client/api-client';
import { PlanError, RunInterrupted } from '../effects/plan-runner';
import type { PlanEnd, PlanRun } from '../effects/plan-runner';
import { LocalTransport, MachineTransport, SshTransport, carryOut } from '../tasks';
import type { CarriedOut, TaskEvent, TaskRecord, Transport } from '../tasks';
import { ClusterNodes } from './cluster-nodes';
import type { NodeStatus } from './cluster-nodes';
import { wantedCluster } from './cluster-source';
import type { WantedCluster } from './cluster-source';
import { ClusterState } from './cluster-state';
import { putKubeconfig } from './kubeconfig-secret';

/** What clusters are provisioned with. */
export interface ClusterPlanOptions {
  readonly client: ApiClient;
  /** Where kubeconfigs are kept. */
  readonly namespace: string;
  /** Trust the first host key of machines whose spec gives none, and hold them to it. */
  readonly trustOnFirstUse: boolean;
  /** Folder for key files while a script runs; best in memory. @default the system's temporary folder */
  readonly folder?: string;
  /** Directory whose files specs may name. @default none */
  readonly configDir?: string;
  readonly onWarning: (message: string) => void;
}

/** Whether the state and the kubeconfig stay when the Cluster goes. */
export function isRetained({ spec }: KubeObject): boolean {
  return (spec as { readonly deletionPolicy?: string } | undefined)?.deletionPolicy === 'Retain';
}

/**
 * Makes a cluster what its spec says: carries out what differs from what was carried out before.
 *
 * @throws PlanError with the first task's reason; RunInterrupted
 */
export async function clusterUp(run: PlanRun, options: ClusterPlanOptions): Promise<PlanEnd> {
  const state = new ClusterState(run.values);
  const wanted = await wantedCluster(run, state.applied, options.configDir);
  const nodes = new ClusterNodes(wanted.nodes, nodesOf(run.object));
  const status = (): Readonly<Record<string, unknown>> => ({ nodes: nodes.list() });
  run.report({ message: `${wanted.plan.length} tasks to look at.`, status: status() });
  // Before anything is begun: the removal needs them, and their source may be gone by then.
  await state.putTexts(wanted.texts);
  const { records, changed } = await carry(run, options, state, wanted.plan, wanted.texts, nodes);
  if (wanted.input !== undefined) await state.putApplied(wanted.input);
  const text = kubeconfigText(records, wanted);
  const { namespace } = options;
  const kubeconfigRef = await putKubeconfig(options.client, run.object, {
    namespace,
    text,
    retain: isRetained(run.object),
  });
  nodes.completed(wanted.nodes, wanted.version);
  return {
    message: changed.length === 0 ? 'Every machine was as it should be.' : `${changed.length} tasks changed something.`,
    status: { ...status(), appliedConfig: wanted.appliedConfig, kubeconfigRef },
  };
}

/**
 * Takes a cluster down: undoes what was carried out, in reverse.
 *
 * @throws PlanError with the first task's reason; RunInterrupted
 */
export async function clusterRemove(run: PlanRun, options: ClusterPlanOptions): Promise<PlanEnd> {
  const state = new ClusterState(run.values);
  const nodes = new ClusterNodes([], nodesOf(run.object));
  const { changed } = await carry(run, options, state, [], state.texts, nodes);
  await state.putApplied(undefined);
  await state.putTexts({});
  return { message: `${changed.length} tasks took something away.`, status: { nodes: [] } };
}

async function carry(
  run: PlanRun,
  options: ClusterPlanOptions,
  state: ClusterState,
  plan: WantedCluster['plan'],
  texts: WantedCluster['texts'],
  nodes: ClusterNodes,
): Promise<CarriedOut> {
  const onEvent = (event: TaskEvent): void => {
    nodes.happened(event);
    const { task, action, phase, message } = event;
    const what = action === 'remove' ? `taking away: ${task.description}` : task.description;
    const text = phase === 'failed' ? `${task.id} failed: ${message ?? ''}` : `${task.id}: ${what}`;
    run.report({ message: text, status: { nodes: nodes.list() }, event: phase === 'started' });
  };
  const end = await carryOut({
    plan,
    previous: state.records,
    transport: timed(transportOf(run, options, state), run.timeout),
    lookup: {
      secret: run.secret,
      file: (path) => (texts[path] === undefined ? run.file(path) : Promise.resolve(texts[path])),
    },
    // Called before each task begins, and after it: whoever must not go on begins nothing.
    save: async (records) => {
      await state.putRecords(records);
      run.mayGoOn();
    },
    signal: run.stop,
    onEvent,
  });
  nodes.keepOnly(end.records);
  const [first, ...others] = end.errors;
  if (first !== undefined) {
    const message = [first, ...others].map((error) => error.message).join('; ');
    throw new PlanError(first.reason, message, { status: { nodes: nodes.list() }, cause: first });
  }
  if (!end.complete) throw new RunInterrupted('The operator stopped; the run goes on where it was.');
  return end;
}

function transportOf(run: PlanRun, options: ClusterPlanOptions, state: ClusterState): Transport {
  const ssh = new SshTransport({
    privateKey: async ({ address, sshKey }) => {
      if (sshKey !== undefined) return run.secret(sshKey);
      throw new PlanError('ErrNotFound', `no SSH key is named for ${address}; set spec.sshKeySecretRef`, {
        hopeless: true,
      });
    },
    ...(options.trustOnFirstUse ? { trustOnFirstUse: state.hostKeys } : {}),
    ...(options.folder === undefined ? {} : { folder: options.folder }),
    onWarning: options.onWarning,
  });
  return new MachineTransport(ssh, new LocalTransport());
}

/** A run that has taken as long as it may breaks the step under way off. */
function timed(transport: Transport, timeout: AbortSignal): Transport {
  return { run: (request) => transport.run({ ...request, signal: timeout }) };
}

function kubeconfigText(records: readonly TaskRecord[], { kubeconfig }: WantedCluster): string {
  const record = records.find(({ task }) => task.id === kubeconfig.task);
  const value = record?.outputs[kubeconfig.name];
  if (value === undefined) {
    throw new PlanError('ErrNoKubeconfig', `${kubeconfig.task} ended well but gave no ${kubeconfig.name}`);
  }
  return Buffer.from(value, 'base64').toString('utf8');
}

function nodesOf({ status }: KubeObject): readonly NodeStatus[] {
  return (status as { readonly nodes?: readonly NodeStatus[] } | undefined)?.nodes ?? [];
}
