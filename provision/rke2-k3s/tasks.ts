import type { Node } from '../cluster/cluster-input';
import type { Task } from '../task/task';
import { drainTask } from './drain';
import type { Rke2K3sInput } from './distribution';
import { installTask } from './install';
import { kubeconfigTask, tokenTask } from './credentials';
import { datastoreType, layoutOf, type ClusterLayout } from './layout';
import { hostnamesTask, preflightTask } from './preflight';
import { removeNodesTask, type RemoveNodesOptions } from './membership';
import { verifyMembershipTask, readyTask } from './ready';
import { snapshotTask } from './snapshot';
import { changeHashValue, preflightId } from './change-token';

/**
 * The plan of a cluster of RKE2 or K3s: all machines are looked at; then servers one at a time, then agents, each cordoned, installed, and
 * waited for.
 */
export function rke2K3sTasks(input: Rke2K3sInput, options: RemoveNodesOptions = {}): readonly Task[] {
  const layout = layoutOf(input);
  const { admin, agents } = layout;
  const looks = input.nodes.map(preflightId);
  const hostnames = input.nodes.length > 1 ? [hostnamesTask(input, looks)] : [];
  const token = tokenTask(input, hostnames.length > 0 ? idsOf(hostnames) : looks);
  const snapshot = datastoreType(input) === 'etcd' ? [snapshotTask(input, [token.id])] : [];
  const start = snapshot.length > 0 ? ['snapshot'] : [token.id];

  const brought = bringUpServers(input, layout, start);
  const settled = idsOf(brought).filter((id) => id.endsWith('/ready') || id.endsWith('/member'));
  const window = input.options.upgradeStrategy?.workerConcurrency ?? 1;
  const joined = agents.flatMap((node, i) => {
    const before = agents[i - window];
    return nodeTasks(input, node, before === undefined ? settled : [`${before.address}/ready`], []);
  });
  const preflights = input.nodes.map((node) =>
    preflightTask(input, node, changeHashValue(node, [...brought, ...joined])),
  );
  const kubeconfig = kubeconfigTask(input, [`${admin.address}/ready`]);
  const members = removeNodesTask(
    input,
    idsOf([...brought, ...joined]).filter((id) => id.endsWith('/ready') || id.endsWith('/member')),
    options,
  );
  return [...preflights, ...hostnames, token, ...snapshot, ...brought, kubeconfig, ...joined, members];
}

const idsOf = (tasks: readonly Task[]): readonly string[] => tasks.map(({ id }) => id);

/** What is done for one node, in order. */
function nodeTasks(input: Rke2K3sInput, node: Node, after: readonly string[], beforeReady: readonly string[]): Task[] {
  const drain = drainTask(input, node, after);
  const install = installTask(input, node, [drain.id]);
  return [drain, install, readyTask(input, node, [install.id, ...beforeReady])];
}

/**
 * Servers, one at a time; those without etcd, behind the first of them, up to `controlPlaneConcurrency` at once. A node can only be asked after
 * once there is an API, so members of etcd that come before it go by what they say of themselves.
 */
function bringUpServers(
  input: Rke2K3sInput,
  { admin, servers }: ClusterLayout,
  start: readonly string[],
): readonly Task[] {
  const adminAt = servers.indexOf(admin);
  const tasks: Task[] = [];
  const waiting: Task[] = [];
  servers.forEach((node, i) => {
    const drain = drainTask(input, node, i === 0 ? start : serverDependencies(input, servers, i, adminAt));
    const install = installTask(input, node, [drain.id]);
    const ready = readyTask(input, node, i < adminAt ? [install.id, `${admin.address}/install`] : [install.id]);
    tasks.push(drain, install);
    if (i < adminAt) waiting.push(ready);
    else tasks.push(...(i === adminAt ? waiting : []), ready);
    if (node.roles.includes('controlplane'))
      tasks.push(verifyMembershipTask(input, node, [...new Set([`${admin.address}/ready`, ready.id])]));
  });
  return tasks;
}

/** What a server that is not the first waits for: the one before it; without etcd, the one that makes room among those at once. */
function serverDependencies(
  input: Rke2K3sInput,
  servers: readonly Node[],
  i: number,
  adminAt: number,
): readonly string[] {
  const lastMember = servers.findLastIndex(({ roles }) => roles.includes('etcd'));
  const concurrency = input.options.upgradeStrategy?.controlPlaneConcurrency ?? 1;
  // Nothing goes at once before all of etcd and the first API are there.
  const at = i <= Math.max(lastMember, adminAt) ? i - 1 : Math.max(i - concurrency, lastMember, adminAt);
  return [`${servers[at]?.address ?? ''}/${at < adminAt ? 'install' : 'ready'}`];
}
