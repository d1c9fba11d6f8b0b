import type { Node } from '../cluster-input';
import { command, sh } from '../shell/quote';
import { script } from '../shell/script';
import { BROKEN, WAIT } from '../shell/wait';
import { drainOptions, drainSeconds } from './drain';
import { factsOf } from './facts';
import type { ServerInput } from './facts';
import { findNode, kubectl } from './kubectl';
import { datastoreOf, isServer } from './layout';

/** How long the API may take to answer, and a node to be gone, in seconds. */
const API_SECONDS = 60;
const GONE_SECONDS = 180;

/** How long leaving may take, in seconds. */
export const leaveSeconds = (input: ServerInput): number => drainSeconds(input) + API_SECONDS + GONE_SECONDS + 120;

/**
 * Takes a node out of its cluster, on a server: drains it for a bounded time, then deletes it, which is how RKE2 and K3s make an etcd member
 * leave. Where there is no cluster any more, or the node is its last, there is nothing to do: what is left is uninstalled.
 */
export function leaveScript(input: ServerInput, node: Node, id: string): string {
  const { service } = factsOf(input);
  const member = isServer(node) && datastoreOf(input) === 'etcd' && node.roles.includes('etcd');
  const seconds = drainSeconds(input);
  const options = drainOptions({
    ...{ force: true, ignoreDaemonSets: true, deleteEmptyDirData: true },
    gracePeriodSeconds: input.options.upgradeStrategy?.drain?.gracePeriodSeconds ?? -1,
    timeoutSeconds: seconds,
  });
  const props = {
    cluster: input.name,
    id,
    doing: `taking ${node.address} out of the cluster`,
    lockSeconds: leaveSeconds(input),
    lock: `lock-${node.address}`,
  };
  return script(props, [
    BROKEN,
    WAIT,
    kubectl(input),
    findNode(node),
    `if ! has_cluster || ! detached systemctl is-active --quiet ${service.server}; then
  note "there is no cluster on this machine any more"
  finish
fi
if ! wait_for ${API_SECONDS} api_answers; then
  note "the API on this machine does not answer, so nothing was taken out of the cluster"
  finish
fi
find_node
if [ -z "$node" ]; then finish; fi
nodes=$(kube get nodes -o 'jsonpath={.items[*].metadata.name}')
if [ "$nodes" = "$node" ]; then
  note "$node is the last node of the cluster"
  finish
fi
changed=true
kube_limit=${seconds + 30}
if ! kube drain "$node" ${command(...options)} >>"$log" 2>&1; then
  note "not everything left $node within ${seconds} s; it was taken out all the same"
fi
kube_limit=${GONE_SECONDS + 30}
if ! kube delete node "$node" --ignore-not-found --timeout=${GONE_SECONDS}s >>"$log" 2>&1; then
  ${stillThere(member, node)}
fi
finish`,
  ]);
}

function stillThere(member: boolean, node: Node): string {
  if (!member) return 'note "the node object $node is still there; delete it with kubectl"';
  const help = `${node.address} did not leave etcd, so it must not be uninstalled yet: look at the log of the servers, delete the node with kubectl, and run again`;
  return `broken LeaveFailed ${sh(help)}`;
}
