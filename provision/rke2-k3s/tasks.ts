import { datastoreType, type Node } from '../cluster/cluster-input';
import type { Task } from '../task/task';
import { drainTask } from './drain';
import type { Rke2K3sInput } from './distribution';
import { installTask } from './install';
import { kubeconfigTask, tokenTask } from './credentials';
import { layoutOf, type ClusterLayout } from './layout';
import { hostnamesTask, preflightTask } from './preflight';
import { removeNodesTask, type RemoveNodesOptions } from './membership';
import { verifyMembershipTask, readyTask } from './ready';
import { snapshotTask } from './snapshot';
import { changeHashValue, preflightId } from './change-token';

/**
 * The plan of a cluster of RKE2 or K3s: a preflight of all machines; then servers one at a time, then agents;
 * each node is cordoned, installed, and waited for.
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

/** The tasks of one agent, in order. */
function nodeTasks(input: Rke2K3sInput, node: Node, after: readonly string[], beforeReady: readonly string[]): Task[] {
  const drain = drainTask(input, node, after);
  const install = installTask(input, node, [drain.id]);
  return [drain, install, readyTask(input, node, [install.id, ...beforeReady])];
}

/**
 * The tasks of the servers, one server at a time; those without etcd that follow the first API server, up to
 * `controlPlaneConcurrency` at once. Nodes can be checked only once there is an API, so the etcd members
 * before it count as up by their own health check.
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

/**
 * What a server other than the first waits for: the one before it or, without etcd, the one whose end frees a
 * slot.
 */
function serverDependencies(
  input: Rke2K3sInput,
  servers: readonly Node[],
  i: number,
  adminAt: number,
): readonly string[] {
  const lastMember = servers.findLastIndex(({ roles }) => roles.includes('etcd'));
  const concurrency = input.options.upgradeStrategy?.controlPlaneConcurrency ?? 1;
  // Servers run in parallel only once all of etcd and the first API are up.
  const at = i <= Math.max(lastMember, adminAt) ? i - 1 : Math.max(i - concurrency, lastMember, adminAt);
  return [`${servers[at]?.address ?? ''}/${at < adminAt ? 'install' : 'ready'}`];
}
