import { machineOf, type Node } from '../cluster/cluster-input';
import { shellCommand, buildScript } from '../shell/script';
import { FAIL_FUNCTION, WAIT_FUNCTION } from '../shell/functions';
import type { StdinValue, Task } from '../task/task';
import { nodeConfigHash } from './config';
import type { Rke2K3sInput } from './distribution';
import { findNodeFunctions, kubectlFunctions } from './kubectl';
import { layoutOf } from './layout';
import { preflightId, changeTokenTrigger } from './change-token';

/**
 * `<address>/drain`: cordons an existing node that is about to change, and drains it if the options say so.
 */
export function drainTask(input: Rke2K3sInput, node: Node, after: readonly string[]): Task {
  const { admin } = layoutOf(input);
  const seconds = drainSeconds(input) + DRAIN_MARGIN_SECONDS;
  return {
    id: `${node.address}/drain`,
    description: `Cordons ${node.address} before it changes`,
    machine: machineOf(admin, input.sshKey),
    after: [...after, preflightId(node)],
    apply: applyScript(input, node, admin, seconds),
    // So that it runs whenever the install task does, which reads its output.
    stdin: [changeTokenTrigger(node)],
    outputs: [NODE_EXISTS],
    timeoutSeconds: 2 * seconds,
  };
}

function applyScript(input: Rke2K3sInput, node: Node, admin: Node, lockSeconds: number): string {
  const props = {
    cluster: input.name,
    id: `${node.address}/drain`,
    doing: `cordoning ${node.address}`,
    lockSeconds,
    lock: `lock-${node.address}`,
  };
  const noAnswer =
    node === admin
      ? 'note "the API does not answer, so this server was not cordoned"\n  give node unknown\n  finish'
      : `die NoApi ${JSON.stringify(`the API on ${admin.address} does not answer, so ${node.address} is left alone. Bring that server back first`)}`;
  const drain = input.options.upgradeStrategy?.drain;
  return buildScript(props, [
    FAIL_FUNCTION,
    WAIT_FUNCTION,
    kubectlFunctions(input),
    findNodeFunctions(node),
    `wanted=${nodeConfigHash(input, node)}
if ! has_cluster; then
  note "there is no cluster yet"
  give node unknown
  finish
fi
if ! wait_for 30 api_answers; then
  ${noAnswer}
fi
find_node
if [ -z "$node" ]; then
  give node no
  finish
fi
give node yes
applied=$(annotation applied)
# A node that was never ready has nothing to drain.
if [ -z "$applied" ]; then finish; fi
if [ "$applied" = "$wanted" ]; then
  # It is as it should be. If we cordoned it, that was for a change that failed and was taken back.
  ${UNCORDON_NODE.replaceAll('\n', '\n  ')}
  finish
fi
cordoned=$(kube get node "$node" -o 'jsonpath={.spec.unschedulable}')
if [ -z "$cordoned" ]; then
  changed=true
  annotate "${CORDONED_ANNOTATION}=$wanted"
  kube cordon "$node" >>"$log" || broken DrainFailed "the node $node cannot be cordoned"
fi`,
    ...(drain?.enabled === true ? [drainCommand(drain)] : []),
    'finish',
  ]);
}

function drainCommand(drain: DrainOptions): string {
  return `changed=true
kube_limit=${drain.timeoutSeconds + 30}
if ! kube drain "$node" ${shellCommand(...drainOptions(drain))} >>"$log" 2>&1; then
  broken DrainFailed "the node $node cannot be drained; it stays cordoned and is not changed"
fi`;
}

type DrainOptions = NonNullable<NonNullable<Rke2K3sInput['options']['upgradeStrategy']>['drain']>;

/** Options of `kubectl drain`. */
export function drainOptions(drain: Omit<DrainOptions, 'enabled'>): readonly string[] {
  return [
    ...(drain.force ? ['--force'] : []),
    ...(drain.ignoreDaemonSets ? ['--ignore-daemonsets'] : []),
    ...(drain.deleteEmptyDirData ? ['--delete-emptydir-data'] : []),
    `--grace-period=${drain.gracePeriodSeconds}`,
    `--timeout=${drain.timeoutSeconds}s`,
  ];
}

/** Timeout of a drain, in seconds. */
export const drainSeconds = (input: Rke2K3sInput): number =>
  input.options.upgradeStrategy?.drain?.timeoutSeconds ?? 120;

/** Time that the drain task may take beyond the drain itself, in seconds. */
const DRAIN_MARGIN_SECONDS = 180;

/**
 * Output of the drain task: whether the cluster has the node, `yes` or `no`, or `unknown` when there is no
 * cluster yet or its API does not respond. A running service whose node was deleted registers it only after a
 * restart.
 */
const NODE_EXISTS = 'node';

/** The value with which the install task reads that output. Its change is no reason to run again. */
export const nodeExistsValue = ({ address }: Node): StdinValue => ({
  name: NODE_EXISTS,
  from: { output: { task: `${address}/drain`, name: NODE_EXISTS } },
  volatile: true,
});

/** Annotation with the hash of the configuration that a node last became ready with. */
export const APPLIED_ANNOTATION = 'kindred.dev/applied';
/** Annotation of a node that we cordoned, and may uncordon. */
const CORDONED_ANNOTATION = 'kindred.dev/cordoned';

/** Uncordons the node, only if we cordoned it. */
export const UNCORDON_NODE = `ours=$(annotation cordoned)
if [ -n "$ours" ]; then
  changed=true
  kube uncordon "$node" >>"$log" || broken UncordonFailed "the node $node cannot be uncordoned"
  annotate ${CORDONED_ANNOTATION}-
fi`;
