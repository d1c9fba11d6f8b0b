import { datastoreType, machineOf, type Node } from '../cluster/cluster-input';
import { FAIL_FUNCTION, WAIT_FUNCTION } from '../shell/functions';
import { shellCommand, buildScript, shellQuote } from '../shell/script';
import type { Task } from '../task/task';
import { preflightId, changeTokenValue } from './change-token';
import { nodeConfigHash, nodeLabels, nodeTaints } from './config';
import { distributionInfo, type Rke2K3sInput } from './distribution';
import { APPLIED_ANNOTATION, UNCORDON_NODE, drainOptions, drainSeconds } from './drain';
import { findNodeFunctions, kubectlFunctions } from './kubectl';
import { isServer, layoutOf } from './layout';

/**
 * `<address>/ready`: waits for the node, sets its labels and taints, and uncordons it. Its removal deletes
 * the node.
 */
export function readyTask(input: Rke2K3sInput, node: Node, after: readonly string[]): Task {
  const { admin } = layoutOf(input);
  const id = `${node.address}/ready`;
  return {
    id,
    description: `Waits until ${node.address} is ready in the cluster`,
    machine: machineOf(admin, input.sshKey),
    // The change token in stdin is an output of the preflight.
    after: [...after, preflightId(node)],
    apply: applyScript(input, node, id),
    remove: removeNodeScript(input, node, id),
    stdin: [changeTokenValue(node)],
    removeReadsStdin: false,
    timeoutSeconds: Math.max(2 * (READY_SECONDS + 120), 2 * removeNodeSeconds(input)),
  };
}

/**
 * `<address>/member`: checks that a server with the API sees the admin's node, so that both are in one
 * cluster.
 *
 * Its removal does nothing. It exists because in plans of earlier versions the removal of that name deleted
 * the node from another server: for a machine that stays, this removal replaces that one before anything is
 * removed.
 */
export function verifyMembershipTask(input: Rke2K3sInput, node: Node, after: readonly string[]): Task {
  const { admin } = layoutOf(input);
  const id = `${node.address}/member`;
  const props = { cluster: input.name, id, doing: `looking for ${admin.address} in the cluster` };
  const body = `if ! wait_for 120 api_answers; then broken NoApi "the API on this machine does not answer"; fi
find_node
if [ -z "$node" ]; then die Failed ${shellQuote(`${admin.address} is not a node of the cluster that ${node.address} is in, though it is ready in its own`)}; fi
: >"$state/joined"
finish`;
  return {
    id,
    description: `Looks from ${node.address} that ${admin.address} is in the same cluster`,
    machine: machineOf(node, input.sshKey),
    after,
    apply: buildScript(props, [FAIL_FUNCTION, WAIT_FUNCTION, kubectlFunctions(input), findNodeFunctions(admin), body]),
    remove: buildScript(props, ['finish']),
    timeoutSeconds: 300,
  };
}

/** How long a node may take to become ready, in seconds. */
const READY_SECONDS = 900;

function applyScript(input: Rke2K3sInput, node: Node, id: string): string {
  const props = {
    cluster: input.name,
    id,
    doing: `waiting for ${node.address}`,
    lockSeconds: READY_SECONDS + 60,
    lock: `lock-${node.address}`,
  };
  return buildScript(props, [
    FAIL_FUNCTION,
    WAIT_FUNCTION,
    kubectlFunctions(input),
    findNodeFunctions(node),
    `wanted=${nodeConfigHash(input, node)}
version=${shellQuote(input.version)}
node=''
seen='no node of it is there yet'
is_ready() {
  has_cluster && find_node && [ -n "$node" ] || return 1
  seen=$(kube get node "$node" -o 'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}') || return 1
  case $seen in 'True '*) ;; *) return 1 ;; esac
  kubelet=$(kube get node "$node" -o 'jsonpath={.status.nodeInfo.kubeletVersion}') || return 1
  seen="it is ready, but its kubelet is still $kubelet"
  [ "$kubelet" = "$version" ]
}
if ! wait_for ${READY_SECONDS} is_ready; then
  broken NotReady ${shellQuote(`${node.address} is not ready in the cluster with ${input.version} after ${READY_SECONDS} s`)}" ($seen)"
fi`,
    setLabelsOrTaints('label', nodeLabels(node)),
    setLabelsOrTaints('taint', nodeTaints(node)),
    UNCORDON_NODE,
    `applied=$(annotation applied)
if [ "$applied" != "$wanted" ]; then
  changed=true
  annotate "${APPLIED_ANNOTATION}=$wanted"
fi
finish`,
  ]);
}

/**
 * Sets labels or taints, and removes those that we set earlier and that are no longer wanted. Others are left
 * alone.
 */
function setLabelsOrTaints(what: 'label' | 'taint', wanted: readonly string[]): string {
  // A label is identified by its key; a taint by its key and its effect.
  const keys = wanted.map((text) => (what === 'label' ? text.replace(/=.*$/, '') : text.replace(/=.*:/, ':')));
  const listed = keys.join(',');
  const present = what === 'label' ? '*' : '{range .spec.taints[*]}{.key}:{.effect} {end}';
  const isThere =
    what === 'label'
      ? [':']
      : [
          `present=$(kube get node "$node" -o ${shellQuote(`jsonpath=${present}`)})`,
          'case " $present" in *" $key "*) ;; *) continue ;; esac',
        ];
  const set =
    wanted.length === 0 ? [] : [`kube ${what} node "$node" --overwrite ${wanted.map(shellQuote).join(' ')} >>"$log"`];
  return [
    `before=$(annotation node-${what}s)`,
    `for key in $(printf '%s' "$before" | tr , ' '); do`,
    `  case ${shellQuote(`,${listed},`)} in *",$key,"*) continue ;; esac`,
    ...isThere.map((line) => `  ${line}`),
    `  kube ${what} node "$node" "$key-" >>"$log"`,
    'done',
    ...set,
    `if [ "$before" != ${shellQuote(listed)} ]; then`,
    '  changed=true',
    `  annotate kindred.dev/node-${what}s=${shellQuote(listed)}`,
    'fi',
  ].join('\n');
}

/**
 * Removes a node from its cluster, on a server: drains it for a bounded time, then deletes it, on which RKE2
 * and K3s remove its etcd member. If there is no cluster any more, or this is its last node or its last member
 * of etcd, there is nothing to do: the rest is uninstalled.
 */
function removeNodeScript(input: Rke2K3sInput, node: Node, id: string): string {
  const { service } = distributionInfo(input);
  const member = isServer(node) && datastoreType(input) === 'etcd' && node.roles.includes('etcd');
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
    lockSeconds: removeNodeSeconds(input),
    lock: `lock-${node.address}`,
  };
  return buildScript(props, [
    FAIL_FUNCTION,
    WAIT_FUNCTION,
    kubectlFunctions(input),
    findNodeFunctions(node),
    `if ! has_cluster || ! detached systemctl is-active --quiet ${service.server}; then
  note "there is no cluster on this machine any more"
  finish
fi
if ! wait_for ${API_WAIT_SECONDS} api_answers; then
  note "the API on this machine does not answer, so nothing was taken out of the cluster"
  finish
fi
find_node
if [ -z "$node" ]; then finish; fi
nodes=$(kube get nodes -o 'jsonpath={.items[*].metadata.name}')
if [ "$nodes" = "$node" ]; then
  note "$node is the last node of the cluster"
  finish
fi${member ? LAST_MEMBER_STAYS : ''}
changed=true
kube_limit=${seconds + 30}
if ! kube drain "$node" ${shellCommand(...options)} >>"$log" 2>&1; then
  note "not everything left $node within ${seconds} s; it was taken out all the same"
fi
kube_limit=${NODE_DELETE_SECONDS + 30}
if ! kube delete node "$node" --ignore-not-found --timeout=${NODE_DELETE_SECONDS}s >>"$log" 2>&1; then
  ${nodeNotDeleted(member, node)}
fi
finish`,
  ]);
}

/** etcd does not remove its last member, so the node of that would never be deleted. */
const LAST_MEMBER_STAYS = `
members=$(kube get nodes -l node-role.kubernetes.io/etcd=true -o 'jsonpath={.items[*].metadata.name}')
if [ "$members" = "$node" ]; then
  note "$node is the last member of etcd"
  finish
fi`;

function nodeNotDeleted(member: boolean, node: Node): string {
  if (!member) return 'note "the node object $node is still there; delete it with kubectl"';
  const help = `${node.address} did not leave etcd, so it must not be uninstalled yet: look at the log of the servers, delete the node with kubectl, and run again`;
  return `broken LeaveFailed ${shellQuote(help)}`;
}

/** How long the API may take to respond, and the deletion of a node to complete, in seconds. */
const API_WAIT_SECONDS = 60;
const NODE_DELETE_SECONDS = 180;

/** How long the removal of a node may take, in seconds. */
const removeNodeSeconds = (input: Rke2K3sInput): number =>
  drainSeconds(input) + API_WAIT_SECONDS + NODE_DELETE_SECONDS + 120;
