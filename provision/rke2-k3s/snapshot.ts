import { machineOf } from '../cluster/cluster-input';
import { sha256 } from '../task/sha256';
import { buildScript } from '../shell/script';
import { FAIL_FUNCTION, SERVICE_FUNCTIONS, SERVICE_START_SECONDS, WAIT_FUNCTION } from '../shell/functions';
import type { Task } from '../task/task';
import { nodeConfigHash, nodeLabels, nodeTaints } from './config';
import { distributionInfo, type Rke2K3sInput } from './distribution';
import { layoutOf } from './layout';

/**
 * `snapshot`: a snapshot of etcd before each change of an existing cluster; only one for a change that is
 * retried.
 */
export function snapshotTask(input: Rke2K3sInput, after: readonly string[]): Task {
  const { first } = layoutOf(input);
  const { program, service, dataFolder } = distributionInfo(input);
  const props = {
    cluster: input.name,
    id: 'snapshot',
    doing: 'taking a snapshot of etcd',
    generation: planConfigHash(input),
    lockSeconds: SNAPSHOT_SECONDS,
    disks: [dataFolder],
  };
  const body = `unit=${service.server}
if marked; then finish; fi
if [ ! -f "$state/installation" ]; then
  note "there is no cluster yet"
  mark
  finish
fi
wait_for ${SERVICE_START_SECONDS} settled || :
if ! active; then
  note "$unit does not run on this machine, so no snapshot was taken; what it needs may be this very change"
  finish
fi
changed=true
if ! run timeout ${SNAPSHOT_SECONDS} ${program} etcd-snapshot save --name kindred; then
  broken SnapshotFailed "no snapshot of etcd could be taken, so nothing was changed"
fi
if ! run timeout 120 ${program} etcd-snapshot prune --name kindred --snapshot-retention ${SNAPSHOT_RETENTION}; then
  note "old snapshots of ours could not be deleted; see $log"
fi
mark
finish`;
  return {
    id: 'snapshot',
    description: 'Takes a snapshot of etcd before the cluster changes',
    machine: machineOf(first, input.sshKey),
    after,
    apply: buildScript(props, [FAIL_FUNCTION, WAIT_FUNCTION, SERVICE_FUNCTIONS, body]),
    timeoutSeconds: 2 * SNAPSHOT_SECONDS + SERVICE_START_SECONDS + 180,
  };
}

/** Timeout of a snapshot, in seconds. */
const SNAPSHOT_SECONDS = 600;
/** How many snapshots of ours are kept. */
const SNAPSHOT_RETENTION = 5;

/** Hash of the configuration of all nodes. */
function planConfigHash(input: Rke2K3sInput): string {
  const nodes = input.nodes.map((node) =>
    [node.address, nodeConfigHash(input, node), ...nodeLabels(node), ...nodeTaints(node)].join(' '),
  );
  return sha256(nodes.sort().join('\n')).slice(0, 16);
}
