import { command, requireStdin, script, sh } from '../shell/script';
import { BROKEN, WAIT } from '../shell/functions';
import type { Node } from '../cluster/cluster-input';
import type { StdinValue, Task } from '../task/task';
import { NODE_LABEL, nodeLabelValue } from './config';
import { drainOptions, drainSeconds } from './drain';
import { factsOf, type ServerInput } from './distribution';
import { kubectl } from './kubectl';
import { datastoreOf, internalAddress, layoutOf, machineOf, urlHost } from './layout';

/** How long the API may take to answer, and a node to be gone, in seconds. */
const API_SECONDS = 60;
const GONE_SECONDS = 180;
/** How long one run may take. A run that is cut short is continued by the next one. */
const MEMBERS_SECONDS = 7200;

/** The values with the labels of the nodes that stay, and of those among them that are protected. */
const STAYING = 'staying';
const GUARDED = 'guarded';
/** The annotation on a node that may not be removed by the next change. */
const PROTECTED = 'kindred.dev/protected';

/** The nodes with our label, one a line: name, label, whether it is ready, whether it is a member of etcd, whether it is protected. */
const NODES = [
  '{range .items[*]}{.metadata.name}|{.metadata.labels.kindred\\.dev/node}|',
  '{.status.conditions[?(@.type=="Ready")].status}|{.metadata.labels.node-role\\.kubernetes\\.io/etcd}|',
  '{.metadata.annotations.kindred\\.dev/protected}{"\\n"}{end}',
].join('');

/** How `members` is carried out. */
export interface MembersOptions {
  /**
   * Whether a machine of the plan is not to leave with the next change. Its node is annotated, and a later run refuses to remove it. For Pulumi, which
   * deletes last: its own protection would hold only once the node is gone.
   * @default nothing is said of that, and no annotation is looked at
   */
  readonly isProtected?: (node: Node, index: number) => boolean;
}

/**
 * `members`: removes from the cluster each node whose machine the plan no longer has. It runs on a server that stays, once all
 * nodes of the plan are ready, and before anything is uninstalled from a machine that leaves.
 *
 * Before it removes anything, it writes down on its machine that the cluster stands (`standing`); its own removal, which comes first
 * when the whole cluster is removed, takes that back. So the last server is not uninstalled because a plan has other machines.
 *
 * It reads the live list of nodes, so it needs no memory of earlier plans and can be repeated after an interruption. It touches
 * only nodes with our label. Nodes that are not ready go first: while they count, etcd needs more of the others for its quorum.
 * A member of etcd whose removal would leave etcd without a quorum is not removed; the script fails instead.
 */
export function membersTask(input: ServerInput, after: readonly string[], { isProtected }: MembersOptions = {}): Task {
  const { admin } = layoutOf(input);
  const guarded = isProtected && input.nodes.filter(isProtected);
  // On stdin, because what is read there stands in the records: whoever plans next learns which machines are surely members.
  const stdin: readonly StdinValue[] = [
    { name: STAYING, from: { text: stayingText(input.nodes) } },
    ...(guarded ? [{ name: GUARDED, from: { text: stayingText(guarded) } }] : []),
  ];
  const body = removeLeaving(input, admin, guarded === undefined ? '' : PROTECTION);
  const props = {
    cluster: input.name,
    id: 'members',
    doing: 'removing nodes that left the plan',
    lockSeconds: MEMBERS_SECONDS,
    lock: 'lock-members',
    stdin,
  };
  return {
    id: 'members',
    description: 'Removes nodes from the cluster whose machines left the plan',
    machine: machineOf(input, admin),
    after,
    apply: script(props, [requireStdin(stdin), BROKEN, WAIT, kubectl(input), body]),
    remove: script({ cluster: input.name, id: 'members', doing: 'preparing to remove the whole cluster' }, [
      'rm -f "$state/standing"\nfinish',
    ]),
    stdin,
    removeReadsStdin: false,
    timeoutSeconds: MEMBERS_SECONDS,
  };
}

/** Refuses to remove a node that is protected, then annotates those that stay as the plan says. */
const PROTECTION = `
  refused=$(printf '%s\\n' "$list" | awk -F '|' -v staying="$staying" '
    $2 != "" && $5 == "true" && index(staying, " " $2 " ") == 0 { print $1; exit }')
  if [ -n "$refused" ]; then
    die Protected "the node $refused is protected, so no node was removed. Put its machine back, name it in removable or set protect: false, and run up; then take it out and run up again"
  fi
  for name in $(printf '%s\\n' "$list" | awk -F '|' -v guarded="$guarded" '
    $2 != "" && index(guarded, " " $2 " ") > 0 && $5 != "true" { print $1 }'); do
    changed=true
    kube annotate node "$name" --overwrite ${PROTECTED}=true >>"$log" || broken NoApi "the node $name cannot be annotated"
  done
  for name in $(printf '%s\\n' "$list" | awk -F '|' -v guarded="$guarded" '
    $2 != "" && index(guarded, " " $2 " ") == 0 && $5 == "true" { print $1 }'); do
    changed=true
    kube annotate node "$name" ${PROTECTED}- >>"$log" || broken NoApi "the node $name cannot be annotated"
  done`;

function removeLeaving(input: ServerInput, admin: Node, protection: string): string {
  const seconds = drainSeconds(input);
  const options = drainOptions({
    ...{ force: true, ignoreDaemonSets: true, deleteEmptyDirData: true },
    gracePeriodSeconds: input.options.upgradeStrategy?.drain?.gracePeriodSeconds ?? -1,
    timeoutSeconds: seconds,
  });
  return `secrets=''
list_nodes() { list=$(kube get nodes -l ${sh(NODE_LABEL)} -o ${sh(`jsonpath=${NODES}`)}); }
if ! wait_for ${API_SECONDS} api_answers; then broken NoApi "the API on this machine does not answer"; fi
# In the wrong cluster every node would look as if it had left the plan.
own=$(kube get nodes -l ${sh(`${NODE_LABEL}=${nodeLabelValue(admin)}`)} -o 'jsonpath={.items[*].metadata.name}')
if [ -z "$own" ]; then die Failed ${sh(`${admin.address} is not a node of the cluster that answers on it, so no node was removed`)}; fi
: >"$state/standing"
while :; do
  wait_for ${API_SECONDS} list_nodes || broken NoApi "the nodes cannot be listed"
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
}

/** The labels of nodes as {@link membersTask} reads them: each between spaces. */
const stayingText = (nodes: readonly Node[]): string => ` ${nodes.map(nodeLabelValue).sort().join(' ')} `;

/**
 * Of the nodes of an earlier plan, those that are surely members still: a later plan that was interrupted may have removed the others.
 *
 * @param members - the recorded task `members`, if it was ever begun
 */
export function stillMembers(nodes: readonly Node[], members: Pick<Task, 'stdin'> | undefined): readonly Node[] {
  const from = members?.stdin?.find(({ name }) => name === STAYING)?.from;
  if (from === undefined || !('text' in from)) return nodes;
  return nodes.filter((node) => from.text.includes(` ${nodeLabelValue(node)} `));
}

/** The API of each server that has one, as the other servers reach it. */
export function apiServers(input: ServerInput): readonly string[] {
  const servers = input.nodes.filter(({ roles }) => roles.includes('controlplane'));
  return servers.map((node) => `https://${urlHost(internalAddress(node))}:6443`);
}

/** Values that the removal of a server's software reads, if whoever runs it has them. */
export interface RemovalFacts {
  /** URLs of API servers that stay, in words. */
  readonly servers?: string;
  /** `yes` when the whole cluster is removed. */
  readonly whole?: string;
}

const REMOVAL_FACTS: readonly (keyof RemovalFacts)[] = ['servers', 'whole'];

/** {@link RemovalFacts} as a script declares them: it does without those that do not come in. */
export const removalFacts: readonly StdinValue[] = REMOVAL_FACTS.map((name) => ({ name, from: { text: '' } }));

/** Whether another server can tell if this one is a member of etcd, and it has the credentials to ask. */
const canAsk = (input: ServerInput, { roles }: Node): boolean =>
  datastoreOf(input) === 'etcd' && roles.includes('controlplane') && roles.includes('etcd');

const memberData = (input: ServerInput): string => sh(`${factsOf(input).dataFolder}/server/db/etcd`);

/** Asks the other servers for this machine's node. `what` sees `server`, the one that answered, and `name`, empty when there is no node. */
function askOthers(input: ServerInput, node: Node, servers: string, what: string): string {
  const label = sh(`${NODE_LABEL}=${nodeLabelValue(node)}`);
  return `kube_limit=15
answered=''
for server in ${servers}; do
  if ! has_cluster; then break; fi
  name=$(kube --server "$server" get nodes -l ${label} -o 'jsonpath={.items[*].metadata.name}') || continue
  answered=$server
${what}
  break
done
kube_limit=60`;
}

const othersOf = (input: ServerInput, node: Node): readonly string[] =>
  apiServers({ ...input, nodes: input.nodes.filter(({ address }) => address !== node.address) });

/**
 * For the removal of a server's software: asks the other servers whether this machine is still a node. If it is, it is deleted
 * through the server that answered, or the script fails; software of a member is never removed. The script names no other machine.
 *
 * When no other server answers and there is data of etcd, the script cannot know and fails, unless the whole cluster is removed.
 */
export function leaveFirst(input: ServerInput, node: Node): string {
  if (!canAsk(input, node)) return ':';
  const { admin } = layoutOf(input);
  const others = othersOf(input, node);
  const data = memberData(input);
  const still = `${node.address} is still a member of the cluster, so it must not be uninstalled yet: look at the log of the servers, delete its node with kubectl, and run again`;
  const last = `${node.address} is the last server of the cluster ${input.name}, so nothing was uninstalled: the cluster would be lost. To keep it, put this machine back in the plan as its first server, and add others behind it. To give the cluster up, delete /var/lib/kindred/${input.name}/standing on this machine and run again`;
  const unknown = `no other server of the cluster answers, so ${node.address} may still be a member of etcd, and nothing was uninstalled. Bring the other servers back and run again. If you know that it is no member any more, delete ${factsOf(input).dataFolder}/server/db on this machine and run again`;
  const leave = `  if [ -n "$name" ]; then
    kube_limit=${GONE_SECONDS + 30}
    kube --server "$server" delete node "$name" --ignore-not-found --timeout=${GONE_SECONDS}s >>"$log" 2>&1 || broken LeaveFailed ${sh(still)}
  fi`;
  const refuse =
    node === admin
      ? `if [ -e "$state/standing" ]; then die LastServer ${sh(last)}; fi`
      : `die LeaveFailed ${sh(unknown)}`;
  return `secrets=''
${askOthers(input, node, ['$servers', ...others.map(sh)].join(' '), leave)}
if [ -z "$answered" ] && [ "$whole" != yes ] && [ -d ${data}/member ]; then
  ${refuse}
fi`;
}

/**
 * For the installation of a server: a member that was removed from etcd, and not uninstalled, cannot come back with its old data. It is
 * put aside, so that the server joins as a new member. The first server cannot join: it would begin a second cluster.
 */
export function joinAnew(input: ServerInput, node: Node): string {
  const others = othersOf(input, node);
  if (!canAsk(input, node) || others.length === 0) return ':';
  const { first } = layoutOf(input);
  const data = memberData(input);
  const refusal = `${node.address} was removed from the cluster that the other servers are in, so it cannot begin it. Put it behind them in the list of nodes`;
  const aside = `  if [ -z "$name" ]; then
    ${
      node === first
        ? `die ClusterExists ${sh(refusal)}`
        : `changed=true
    detached systemctl stop "$unit" || broken ServiceFailed "systemctl stop $unit fails"
    rm -rf ${data}-removed
    mv ${data} ${data}-removed
    rm -f "$state/joined"`
    }
  fi`;
  return `if [ -e "$state/joined" ] && [ -d ${data}/member ] && ! is_up; then
${askOthers(input, node, others.map(sh).join(' '), aside)}
fi`;
}
