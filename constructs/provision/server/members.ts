import { command, sh } from '../shell/quote';
import { script } from '../shell/script';
import { BROKEN, WAIT } from '../shell/wait';
import type { Node } from '../cluster-input';
import type { Task } from '../task';
import { NODE_LABEL, nodeLabelValue } from './config';
import { drainOptions, drainSeconds } from './drain';
import type { ServerInput } from './facts';
import { kubectl } from './kubectl';
import { datastoreOf, internalAddress, isServer, layoutOf, machineOf, urlHost } from './layout';

/** How long the API may take to answer, and a node to be gone, in seconds. */
const API_SECONDS = 60;
const GONE_SECONDS = 180;
/** How long one run may take. A run that is cut short is continued by the next one. */
const MEMBERS_SECONDS = 7200;

/** The nodes with our label, one a line: name, label, whether it is ready, whether it is a member of etcd. */
const NODES = [
  '{range .items[*]}{.metadata.name}|{.metadata.labels.kindred\\.dev/node}|',
  '{.status.conditions[?(@.type=="Ready")].status}|{.metadata.labels.node-role\\.kubernetes\\.io/etcd}{"\\n"}{end}',
].join('');

/**
 * `members`: removes from the cluster each node whose machine the plan no longer has. It runs on a server that stays, once all
 * nodes of the plan are ready, and before anything is uninstalled from a machine that leaves.
 *
 * It reads the live list of nodes, so it needs no memory of earlier plans and can be repeated after an interruption. It touches
 * only nodes with our label. Nodes that are not ready go first: while they count, etcd needs more of the others for its quorum.
 * A member of etcd whose removal would leave etcd without a quorum is not removed; the script fails instead.
 */
export function membersTask(input: ServerInput, after: readonly string[]): Task {
  const { admin } = layoutOf(input);
  const seconds = drainSeconds(input);
  const options = drainOptions({
    ...{ force: true, ignoreDaemonSets: true, deleteEmptyDirData: true },
    gracePeriodSeconds: input.options.upgradeStrategy?.drain?.gracePeriodSeconds ?? -1,
    timeoutSeconds: seconds,
  });
  const props = {
    cluster: input.name,
    id: 'members',
    doing: 'removing nodes that left the plan',
    lockSeconds: MEMBERS_SECONDS,
    lock: 'lock-members',
  };
  const staying = input.nodes.map((node) => nodeLabelValue(node)).sort();
  const body = `staying=${sh(` ${staying.join(' ')} `)}
list_nodes() { list=$(kube get nodes -l ${sh(NODE_LABEL)} -o ${sh(`jsonpath=${NODES}`)}); }
if ! wait_for ${API_SECONDS} api_answers; then broken NoApi "the API on this machine does not answer"; fi
# In the wrong cluster every node would look as if it had left the plan.
own=$(kube get nodes -l ${sh(`${NODE_LABEL}=${nodeLabelValue(admin)}`)} -o 'jsonpath={.items[*].metadata.name}')
if [ -z "$own" ]; then die Failed ${sh(`${admin.address} is not a node of the cluster that answers on it, so no node was removed`)}; fi
while :; do
  wait_for ${API_SECONDS} list_nodes || broken NoApi "the nodes cannot be listed"
  leaving=$(printf '%s\\n' "$list" | awk -F '|' -v staying="$staying" '
    $2 == "" { next }
    $4 == "true" { members++; if ($3 == "True") ready++ }
    index(staying, " " $2 " ") == 0 && (name == "" || (was == "True" && $3 != "True")) { name = $1; was = $3; member = $4 }
    END {
      if (name == "") exit
      if (was == "") was = "Unknown"
      if (member != "true") { print name, was, "safe"; exit }
      members--
      if (was == "True") ready--
      print name, was, (ready >= int(members / 2) + 1 ? "safe" : "unsafe"), ready + 0, members
    }')
  if [ -z "$leaving" ]; then finish; fi
  # The words are names and numbers.
  # shellcheck disable=SC2086
  set -- $leaving
  node=$1
  if [ "$3" = unsafe ]; then
    die QuorumAtRisk "without $node only $4 of $5 members of etcd would be ready, which is no quorum, so it was not removed. Bring the other servers back (kubectl get nodes shows which are not ready), and run again"
  fi
  changed=true
  if [ "$2" = True ]; then
    kube_limit=${seconds + 30}
    if ! kube drain "$node" ${command(...options)} >>"$log" 2>&1; then
      note "not everything left $node within ${seconds} s; it was removed all the same"
    fi
  fi
  kube_limit=${GONE_SECONDS + 30}
  if ! kube delete node "$node" --ignore-not-found --timeout=${GONE_SECONDS}s >>"$log" 2>&1; then
    broken LeaveFailed "the node $node is still in the cluster, so its machine must not be uninstalled yet: look at the log of the servers, delete the node with kubectl, and run again"
  fi
  kube_limit=60
done`;
  return {
    id: 'members',
    description: 'Removes nodes from the cluster whose machines left the plan',
    machine: machineOf(input, admin),
    after,
    apply: script(props, [BROKEN, WAIT, kubectl(input), body]),
    timeoutSeconds: MEMBERS_SECONDS,
  };
}

/**
 * For the removal of a server's software: asks the other servers whether this machine is still a node. If it is, it is deleted
 * through the server that answered, or the script fails; software of a member is never removed. The script names no other machine.
 * When no other server answers, it is the last one, or the whole cluster is down.
 */
export function leaveFirst(input: ServerInput, node: Node): string {
  const others = layoutOf(input).servers.filter((other) => other !== node && other.roles.includes('controlplane'));
  if (!isServer(node) || datastoreOf(input) !== 'etcd' || others.length === 0) return ':';
  const label = sh(`${NODE_LABEL}=${nodeLabelValue(node)}`);
  const help = `${node.address} is still a member of the cluster, so it must not be uninstalled yet: look at the log of the servers, delete its node with kubectl, and run again`;
  return `kube_limit=15
for server in ${others.map((other) => sh(`https://${urlHost(internalAddress(other))}:6443`)).join(' ')}; do
  if ! has_cluster; then break; fi
  name=$(kube --server "$server" get nodes -l ${label} -o 'jsonpath={.items[*].metadata.name}') || continue
  if [ -z "$name" ]; then break; fi
  kube_limit=${GONE_SECONDS + 30}
  kube --server "$server" delete node "$name" --ignore-not-found --timeout=${GONE_SECONDS}s >>"$log" 2>&1 || broken LeaveFailed ${sh(help)}
  break
done`;
}
