import { datastoreType, machineOf, type Node } from '../cluster/cluster-input';
import {
  CHECK_BRIDGE_MODULE,
  CHECK_CLOCK,
  REQUIRE_DOWNLOADER,
  CHECK_NETWORK_SERVICES,
  CHECK_SELINUX,
  CHECK_SYSTEMD,
  checkArchitecture,
  checkForeignInstallation,
  checkFreeDisk,
  checkFreePorts,
  checkHostName,
  requirePrograms,
  CHECK_SWAP,
  preflightFunctions,
  unlessInstalled,
} from '../shell/preflight';
import { STATE_DIR, buildScript } from '../shell/script';
import type { StdinValue, Task } from '../task/task';
import { distributionInfo, type Rke2K3sInput } from './distribution';
import { isServer, layoutOf } from './layout';
import { ISSUE_CHANGE_TOKEN, CHANGE_TOKEN, preflightId } from './change-token';
import { checkImmutableSettings, checkVersionSkew } from './immutable';

/**
 * `<address>/preflight`: checks a machine before anything is changed, and reports all problems at once. Its
 * outputs are the host name and the change token.
 *
 * @param change - `changeHashValue` of the node
 */
export function preflightTask(input: Rke2K3sInput, node: Node, change: StdinValue): Task {
  const id = preflightId(node);
  const { program, configFolder, dataFolder, label } = distributionInfo(input);
  const pieces = [
    preflightFunctions(node.address),
    // The health of a member of etcd without an API is checked with curl.
    requirePrograms(
      isServer(node) && !node.roles.includes('controlplane') ? [...REQUIRED_PROGRAMS, 'curl'] : REQUIRED_PROGRAMS,
    ),
    CHECK_SYSTEMD,
    ...(input.installer?.path === undefined ? [REQUIRE_DOWNLOADER] : []),
    checkArchitecture(input.distribution === 'k3s' ? ['x86_64', 'aarch64', 'armv7l', 's390x'] : ['x86_64', 'aarch64']),
    checkHostName(node.hostnameOverride),
    checkForeignInstallation({
      stateFolder: STATE_DIR,
      programs: conflictingPrograms(program),
      folders: [`${configFolder}/config.yaml`, `${dataFolder}/server`, `${dataFolder}/agent`],
    }),
    checkImmutableSettings(input, node),
    checkVersionSkew(input),
    unlessInstalled([checkFreeDisk(dataFolder, MIN_DISK_MIB), checkFreePorts(requiredPorts(input, node))]),
    CHECK_SWAP,
    CHECK_BRIDGE_MODULE,
    CHECK_CLOCK,
    CHECK_NETWORK_SERVICES,
    ...(input.options.selinux === true ? [] : [CHECK_SELINUX]),
    ISSUE_CHANGE_TOKEN,
    'report',
  ];
  return {
    id,
    description: `Looks whether ${node.address} can run ${label}`,
    machine: machineOf(node, input.sshKey),
    after: [],
    apply: buildScript({ cluster: input.name, id, doing: `looking at ${node.address}`, stdin: [change] }, pieces),
    stdin: [change],
    outputs: ['hostname', CHANGE_TOKEN],
    timeoutSeconds: 120,
  };
}

/** `hostnames`: no two machines may have the same name, or the second replaces the first in the cluster. */
export function hostnamesTask(input: Rke2K3sInput, after: readonly string[]): Task {
  const { admin } = layoutOf(input);
  const id = 'hostnames';
  const stdin = input.nodes.map((node, i): StdinValue & { readonly address: string } => ({
    name: `name_${i}`,
    from: { output: { task: preflightId(node), name: 'hostname' } },
    address: node.address,
  }));
  const list = stdin.map(({ name, address }) => `printf '%s %s\\n' "$${name}" ${address}`).join('\n');
  const body = `pairs=$(${list})
twice=$(printf '%s\\n' "$pairs" | awk '{ at[$1] = at[$1] " " $2; n[$1]++ } END { for (name in n) if (n[name] > 1) print "  - " name ":" at[name] }')
if [ -n "$twice" ]; then
  secrets=''
  die PreflightFailed "machines have the same host name. Give each its own (hostnamectl hostname NAME), or set hostnameOverride:
$twice"
fi
finish`;
  const values = stdin.map(({ name, from }): StdinValue => ({ name, from }));
  return {
    id,
    description: 'Looks whether all machines have names of their own',
    machine: machineOf(admin, input.sshKey),
    after,
    apply: buildScript({ cluster: input.name, id, doing: 'comparing host names', stdin: values }, [body]),
    stdin: values,
    timeoutSeconds: 120,
  };
}

/** Programs that the scripts run. */
const REQUIRED_PROGRAMS = [
  'awk',
  'base64',
  'cmp',
  'cut',
  'dd',
  'df',
  'flock',
  'grep',
  'od',
  'sed',
  'sha256sum',
  'timeout',
  'tr',
];

/**
 * Free space that an installation needs on the disk of its data, in MiB: for the images of a server and for
 * etcd.
 */
const MIN_DISK_MIB = 2048;

/**
 * Programs of other installations. The executable `k3s` is allowed, since air-gapped sites put it there
 * beforehand.
 */
function conflictingPrograms(program: string): readonly string[] {
  return program === 'k3s' ? ['rke2', 'k3s-uninstall.sh', 'k3s-agent-uninstall.sh'] : ['rke2', 'k3s'];
}

/** TCP ports that must be free. Sources: the networking requirements of RKE2 and K3s. */
function requiredPorts(input: Rke2K3sInput, node: Node): readonly number[] {
  const kubelet = [10250];
  if (!isServer(node)) return kubelet;
  const { registrationPort } = distributionInfo(input);
  const api = node.roles.includes('controlplane') ? [6443] : [];
  const etcd = datastoreType(input) === 'etcd' && node.roles.includes('etcd') ? [2379, 2380] : [];
  return [...new Set([registrationPort, ...api, ...etcd, ...kubelet])];
}
