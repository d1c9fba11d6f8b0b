/**
 * Members of the cluster: removes departed nodes, and guards the uninstallation and reinstallation of etcd
 * members.
 */

import { shellCommand, requireStdin, buildScript, shellQuote } from '../shell/script';
import { FAIL_FUNCTION, WAIT_FUNCTION } from '../shell/functions';
import { datastoreType, machineOf, type ClusterInput, type Node } from '../cluster/cluster-input';
import type { StdinValue, Task } from '../task/task';
import { NODE_LABEL, nodeLabelValue } from './config';
import { drainOptions, drainSeconds } from './drain';
import { distributionInfo, type Rke2K3sInput } from './distribution';
import { etcdDataDir, etcdHosts, etcdMemberFunctions } from './etcd';
import { kubectlFunctions } from './kubectl';
import { internalAddress, layoutOf, urlHost } from './layout';

/** Options of {@link removeNodesTask}. */
export interface RemoveNodesOptions {
  /**
   * Whether the next change may not remove a node of the plan. The node is annotated, and a later run refuses
   * to remove it. For Pulumi, which deletes last: its own protection would take effect only after the node
   * was removed.
   * @default annotations are neither written nor read
   */
  readonly isProtected?: (node: Node, index: number) => boolean;
}

/**
 * `members`: removes each node from the cluster whose machine the plan no longer has. It runs on a server
 * that stays, once all nodes of the plan are ready, and before anything is uninstalled from a machine that
 * leaves.
 *
 * Before it removes anything, it records on its machine that the cluster is complete (`standing`); its own
 * removal, which runs first when the whole cluster is removed, deletes that record. So a plan with other
 * machines does not uninstall the last server.
 *
 * It reads the live list of nodes, so it needs no record of earlier plans and can be repeated after an
 * interruption. It affects only nodes with our label. Nodes that are not ready are removed first: while they
 * are members, etcd needs more of the others for its quorum. If a removal would leave etcd without a quorum,
 * the script fails instead.
 */
export function removeNodesTask(
  input: Rke2K3sInput,
  after: readonly string[],
  { isProtected }: RemoveNodesOptions = {},
): Task {
  const { admin } = layoutOf(input);
  const guarded = isProtected && input.nodes.filter(isProtected);
  // On stdin, because records contain stdin: `remainingMembers` reads from them which machines are certainly
  // members.
  const stdin: readonly StdinValue[] = [
    { name: REMAINING_NODES, from: { text: nodeLabelList(input.nodes) } },
    ...(guarded ? [{ name: PROTECTED_NODES, from: { text: nodeLabelList(guarded) } }] : []),
  ];
  const body = removeDepartedNodes(input, admin, guarded === undefined ? '' : ENFORCE_PROTECTION);
  const props = {
    cluster: input.name,
    id: 'members',
    doing: 'removing nodes that left the plan',
    lockSeconds: REMOVE_NODES_SECONDS,
    lock: 'lock-members',
    stdin,
  };
  return {
    id: 'members',
    description: 'Removes nodes from the cluster whose machines left the plan',
    machine: machineOf(admin, input.sshKey),
    after,
    apply: buildScript(props, [requireStdin(stdin), FAIL_FUNCTION, WAIT_FUNCTION, kubectlFunctions(input), body]),
    remove: buildScript({ cluster: input.name, id: 'members', doing: 'preparing to remove the whole cluster' }, [
      'rm -f "$state/standing"\nfinish',
    ]),
    stdin,
    removeReadsStdin: false,
    timeoutSeconds: REMOVE_NODES_SECONDS,
  };
}

/** How long one run may take, in seconds. The next run continues an interrupted one. */
const REMOVE_NODES_SECONDS = 7200;

/** Names of the values with the labels of the nodes that stay, and of those among them that are protected. */
const REMAINING_NODES = 'staying';
const PROTECTED_NODES = 'guarded';

/** The label values of nodes as the script of {@link removeNodesTask} reads them: each between spaces. */
const nodeLabelList = (nodes: readonly Node[]): string => ` ${nodes.map(nodeLabelValue).sort().join(' ')} `;

function removeDepartedNodes(input: Rke2K3sInput, admin: Node, protection: string): string {
  const seconds = drainSeconds(input);
  const options = drainOptions({
    ...{ force: true, ignoreDaemonSets: true, deleteEmptyDirData: true },
    gracePeriodSeconds: input.options.upgradeStrategy?.drain?.gracePeriodSeconds ?? -1,
    timeoutSeconds: seconds,
  });
  return `secrets=''
list_nodes() { list=$(kube get nodes -l ${shellQuote(NODE_LABEL)} -o ${shellQuote(`jsonpath=${NODES_JSONPATH}`)}); }
if ! wait_for ${API_WAIT_SECONDS} api_answers; then broken NoApi "the API on this machine does not answer"; fi
# In the wrong cluster every node would look as if it had left the plan.
own=$(kube get nodes -l ${shellQuote(`${NODE_LABEL}=${nodeLabelValue(admin)}`)} -o 'jsonpath={.items[*].metadata.name}')
if [ -z "$own" ]; then die Failed ${shellQuote(`${admin.address} is not a node of the cluster that answers on it, so no node was removed`)}; fi
: >"$state/standing"
while :; do
  wait_for ${API_WAIT_SECONDS} list_nodes || broken NoApi "the nodes cannot be listed"
  for label in $staying; do
    case "
$list" in
      *"
"*"|$label|"*) ;;
      *) die NotANode "the machine $label is in the plan, but is no node of the cluster, so nothing was removed. An earlier change that was interrupted, or a person, deleted its node. Take the machine out of the plan, and add it again once that is done" ;;
    esac
  done${protection}
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
    if ! kube drain "$node" ${shellCommand(...options)} >>"$log" 2>&1; then
      note "not everything left $node within ${seconds} s; it was removed all the same"
    fi
  fi
  kube_limit=${NODE_DELETE_SECONDS + 30}
  if ! kube delete node "$node" --ignore-not-found --timeout=${NODE_DELETE_SECONDS}s >>"$log" 2>&1; then
    broken LeaveFailed "the node $node is still in the cluster, so its machine must not be uninstalled yet: look at the log of the servers, delete the node with kubectl, and run again"
  fi
  kube_limit=60
done`;
}

/** How long the API may take to respond, and the deletion of a node to complete, in seconds. */
const API_WAIT_SECONDS = 60;
const NODE_DELETE_SECONDS = 180;

/** The nodes with our label, one per line: name, label, whether it is ready, an etcd member, protected. */
const NODES_JSONPATH = [
  '{range .items[*]}{.metadata.name}|{.metadata.labels.kindred\\.dev/node}|',
  '{.status.conditions[?(@.type=="Ready")].status}|{.metadata.labels.node-role\\.kubernetes\\.io/etcd}|',
  '{.metadata.annotations.kindred\\.dev/protected}{"\\n"}{end}',
].join('');

/** Annotation of a node that the next change may not remove. */
const PROTECTED_ANNOTATION = 'kindred.dev/protected';

/** Refuses to remove a node that is protected, then annotates those that stay as the plan says. */
const ENFORCE_PROTECTION = `
  refused=$(printf '%s\\n' "$list" | awk -F '|' -v staying="$staying" '
    $2 != "" && $5 == "true" && index(staying, " " $2 " ") == 0 { print $1; exit }')
  if [ -n "$refused" ]; then
    die Protected "the node $refused is protected, so no node was removed. Put its machine back, name it in removable or set protect: false, and run up; then take it out and run up again"
  fi
  for name in $(printf '%s\\n' "$list" | awk -F '|' -v guarded="$guarded" '
    $2 != "" && index(guarded, " " $2 " ") > 0 && $5 != "true" { print $1 }'); do
    changed=true
    kube annotate node "$name" --overwrite ${PROTECTED_ANNOTATION}=true >>"$log" || broken NoApi "the node $name cannot be annotated"
  done
  for name in $(printf '%s\\n' "$list" | awk -F '|' -v guarded="$guarded" '
    $2 != "" && index(guarded, " " $2 " ") == 0 && $5 == "true" { print $1 }'); do
    changed=true
    kube annotate node "$name" ${PROTECTED_ANNOTATION}- >>"$log" || broken NoApi "the node $name cannot be annotated"
  done`;

/**
 * The nodes of an earlier plan that are certainly still members: a later plan that was interrupted may have
 * removed the others.
 *
 * @param members - the recorded task `members`, if it was ever started
 */
export function remainingMembers(nodes: readonly Node[], members: Pick<Task, 'stdin'> | undefined): readonly Node[] {
  const from = members?.stdin?.find(({ name }) => name === REMAINING_NODES)?.from;
  if (from === undefined || !('text' in from)) return nodes;
  return nodes.filter((node) => from.text.includes(` ${nodeLabelValue(node)} `));
}

/** The API URL of each server that has one, at the address that the other servers use. */
function apiServers(input: Rke2K3sInput): readonly string[] {
  const servers = input.nodes.filter(({ roles }) => roles.includes('controlplane'));
  return servers.map((node) => `https://${urlHost(internalAddress(node))}:6443`);
}

/** Values that the uninstallation of a server reads, if the runner of the plan has them. */
export interface RemovalFacts {
  /** URLs of API servers that stay, separated by spaces. */
  readonly servers?: string;
  /** Hosts of members of etcd that stay, separated by spaces. */
  readonly etcd?: string;
  /** `yes` when the whole cluster is removed. */
  readonly whole?: string;
}

/** The {@link RemovalFacts} of a change to this input. */
export const removalFacts = (input: ClusterInput): RemovalFacts =>
  input.distribution === 'rke' ? {} : { servers: apiServers(input).join(' '), etcd: etcdHosts(input.nodes).join(' ') };

const REMOVAL_FACTS: readonly (keyof RemovalFacts)[] = ['servers', 'etcd', 'whole'];

/** {@link RemovalFacts} as stdin values of a script, all optional. */
export const removalFactValues: readonly StdinValue[] = REMOVAL_FACTS.map((name) => ({ name, from: { text: '' } }));

/**
 * For the uninstallation of a server with etcd: takes the machine out of the cluster, or fails. A member is
 * never uninstalled.
 *
 * First the other servers are asked whether this machine still has a node, which is deleted. Then etcd itself
 * is asked: an installation that was interrupted leaves a member without a node. Its service is stopped
 * before etcd is asked for the last time, since it may just be joining, or join again.
 *
 * When etcd does not answer, a machine that was a node once and is none any more has left it too. Any other
 * with data of etcd may be a member, and the script fails, unless the whole cluster is removed.
 */
export function leaveBeforeUninstall(input: Rke2K3sInput, node: Node): string {
  if (!isEtcdMember(input, node)) return ':';
  const still = `${node.address} is still a member of the cluster, so it must not be uninstalled yet: look at the log of the servers, delete its node with kubectl, and run again`;
  const refused = `etcd does not remove its member on ${node.address}, so nothing was uninstalled. It refuses while too few of the other members are healthy: bring the other servers back and run again`;
  const leave = `  if [ -n "$name" ]; then
    changed=true
    kube_limit=${NODE_DELETE_SECONDS + 30}
    kube --server "$server" delete node "$name" --ignore-not-found --timeout=${NODE_DELETE_SECONDS}s >>"$log" 2>&1 || broken LeaveFailed ${shellQuote(still)}
    left=yes
  elif [ -e "$state/joined" ]; then
    left=yes
  fi`;
  const servers = ['$servers', ...otherApiServers(input, node).map(shellQuote)].join(' ');
  const members = otherMembers(input, node, '$etcd');
  const leaveEtcd = `if ! wait_for ${ETCD_REMOVE_SECONDS} leave_etcd ${members}; then broken LeaveFailed ${shellQuote(refused)}; fi`;
  return `${WAIT_FUNCTION}
${etcdMemberFunctions(input, node)}
secrets=''
left=''
${queryOtherServers(input, node, servers, leave)}
if [ "$whole" != yes ] && ask_etcd ${members}; then
  ${leaveEtcd}
  if active || starting; then
    detached systemctl stop "$unit" || broken UninstallFailed "systemctl stop $unit fails"
    ${leaveEtcd}
  fi
  left=yes
fi
if [ -z "$left" ] && [ "$whole" != yes ] && [ -d ${etcdDataDir(input)}/member ]; then
  ${refuseUnknown(input, node)}
fi`;
}

/** Ends the uninstallation of a machine of which nobody says whether it is a member of etcd. */
function refuseUnknown(input: Rke2K3sInput, node: Node): string {
  const { admin, first } = layoutOf(input);
  const last = `${node.address} is the last server of the cluster ${input.name}, so nothing was uninstalled: the cluster would be lost. To keep it, put this machine back in the plan as its first server, and add others behind it. To give the cluster up, delete /var/lib/kindred/${input.name}/standing on this machine and run again`;
  const unknown = `no other member of etcd answers ${node.address} on port 2379, so it may still be a member itself, and nothing was uninstalled. Bring the other servers back and run again. If they are up, look whether curl on this machine knows HTTP/2 (curl --version), which it takes to ask etcd. If you know that it is no member any more (etcdctl member list on another server), delete ${distributionInfo(input).dataFolder}/server/db on this machine and run again`;
  if (node === admin) return `if [ -e "$state/standing" ]; then die LastServer ${shellQuote(last)}; fi`;
  const refuse = `die LeaveFailed ${shellQuote(unknown)}`;
  // The whole cluster is removed without this word in Pulumi, and the first server is the last that is left.
  return node === first ? `if [ -n "$etcd" ]; then ${refuse}; fi` : refuse;
}

/** How long etcd may refuse to remove a member, in seconds: after a change it does so for some seconds. */
const ETCD_REMOVE_SECONDS = 60;

/**
 * For the installation of a server with etcd: a member that was removed from etcd, but not uninstalled, cannot
 * rejoin with its old data. The data is moved aside, so that the server joins as a new member. The first
 * server cannot join: it would start a second cluster.
 *
 * When etcd does not answer, the other servers are asked for the node of a machine that had one.
 */
export function rejoinAsNewMember(input: Rke2K3sInput, node: Node): string {
  const members = otherMembers(input, node);
  const servers = otherApiServers(input, node);
  if (!isEtcdMember(input, node) || (members === '' && servers.length === 0)) return ':';
  const { first } = layoutOf(input);
  const data = etcdDataDir(input);
  const refusal = `${node.address} was removed from the cluster that the other servers are in, so it cannot begin it. Put it behind them in the list of nodes`;
  const aside =
    node === first
      ? `die ClusterExists ${shellQuote(refusal)}`
      : `changed=true
  detached systemctl stop "$unit" || broken ServiceFailed "systemctl stop $unit fails"
  rm -rf ${data}-removed
  mv ${data} ${data}-removed
  rm -f "$state/joined"`;
  const byNode = queryOtherServers(
    input,
    node,
    servers.map(shellQuote).join(' '),
    '  if [ -z "$name" ]; then removed=yes; fi',
  );
  return `${etcdMemberFunctions(input, node)}
removed=''
if [ -d ${data}/member ] && ! is_up; then
  if ask_etcd ${members}; then
    if [ -z "$member" ]; then removed=yes; fi
  elif [ -e "$state/joined" ]; then
${byNode}
  fi
fi
if [ -n "$removed" ]; then
  ${aside}
fi`;
}

/** Whether a node is a member of embedded etcd. */
const isEtcdMember = (input: Rke2K3sInput, { roles }: Node): boolean =>
  datastoreType(input) === 'etcd' && roles.includes('etcd');

/**
 * Queries the other servers for this machine's node, if it has the credentials for it: with the API of its
 * own. `what` reads `server`, the one that responded, and `name`, empty without a node.
 */
function queryOtherServers(input: Rke2K3sInput, node: Node, servers: string, what: string): string {
  if (!node.roles.includes('controlplane') || servers === '') return ':';
  const label = shellQuote(`${NODE_LABEL}=${nodeLabelValue(node)}`);
  return `kube_limit=15
for server in ${servers}; do
  if ! has_cluster; then break; fi
  name=$(kube --server "$server" get nodes -l ${label} -o 'jsonpath={.items[*].metadata.name}') || continue
${what}
  break
done
kube_limit=60`;
}

const others = ({ nodes }: Rke2K3sInput, { address }: Node): readonly Node[] =>
  nodes.filter((other) => other.address !== address);

const otherApiServers = (input: Rke2K3sInput, node: Node): readonly string[] =>
  apiServers({ ...input, nodes: others(input, node) });

/** The hosts of the other members of etcd as words of a shell, after those in `before`. */
const otherMembers = (input: Rke2K3sInput, node: Node, ...before: readonly string[]): string =>
  [...before, ...etcdHosts(others(input, node)).map(shellQuote)].join(' ');
