import type { Node } from '../cluster/cluster-input';
import {
  BRIDGE_MODULE,
  CLOCK,
  NEEDS_DOWNLOADER,
  NETWORK_SERVICES,
  SELINUX,
  SYSTEMD,
  architecture,
  foreignInstallation,
  freeDisk,
  freePorts,
  hostName,
  needsPrograms,
  noSwap,
  preflightStart,
  unlessOurs,
} from '../shell/preflight';
import { STATE_FOLDER, script } from '../shell/script';
import type { StdinValue, Task } from '../task/task';
import { factsOf, type ServerInput } from './distribution';
import { datastoreOf, isServer, layoutOf, machineOf } from './layout';
import { GIVE_TURN, TURN, preflightId } from './change-token';
import { unchangedPreflight, versionStepPreflight } from './immutable';

/** What each script runs besides what a shell has built in. */
const PROGRAMS = [
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

/** What an installation needs on the disk of its data, in MiB: the images of a server and room for etcd. */
const DISK_MEBIBYTES = 2048;

/**
 * `<address>/preflight`: looks at a machine before anything is touched, and names all that must be changed. Gives the machine's name, and a turn to
 * what is then done to it.
 *
 * @param change - `changeValue` of the node
 */
export function preflightTask(input: ServerInput, node: Node, change: StdinValue): Task {
  const id = preflightId(node);
  const { program, configFolder, dataFolder, label } = factsOf(input);
  const pieces = [
    preflightStart(node.address),
    // A member of etcd without an API is asked for its health with curl.
    needsPrograms(isServer(node) && !node.roles.includes('controlplane') ? [...PROGRAMS, 'curl'] : PROGRAMS),
    SYSTEMD,
    ...(input.installer?.path === undefined ? [NEEDS_DOWNLOADER] : []),
    architecture(input.distribution === 'k3s' ? ['x86_64', 'aarch64', 'armv7l', 's390x'] : ['x86_64', 'aarch64']),
    hostName(node.hostnameOverride),
    foreignInstallation({
      stateFolder: STATE_FOLDER,
      programs: programs(program),
      folders: [`${configFolder}/config.yaml`, `${dataFolder}/server`, `${dataFolder}/agent`],
    }),
    unchangedPreflight(input, node),
    versionStepPreflight(input),
    unlessOurs([freeDisk(dataFolder, DISK_MEBIBYTES), freePorts(portsOf(input, node))]),
    noSwap('warning'),
    BRIDGE_MODULE,
    CLOCK,
    NETWORK_SERVICES,
    ...(input.options.selinux === true ? [] : [SELINUX]),
    GIVE_TURN,
    'report',
  ];
  return {
    id,
    description: `Looks whether ${node.address} can run ${label}`,
    machine: machineOf(input, node),
    after: [],
    apply: script({ cluster: input.name, id, doing: `looking at ${node.address}`, stdin: [change] }, pieces),
    stdin: [change],
    outputs: ['hostname', TURN],
    timeoutSeconds: 120,
  };
}

/** Those that an air-gapped site puts there beforehand do not count. */
function programs(program: string): readonly string[] {
  return program === 'k3s' ? ['rke2', 'k3s-uninstall.sh', 'k3s-agent-uninstall.sh'] : ['rke2', 'k3s'];
}

/** Sources: the networking requirements of RKE2 and K3s. */
function portsOf(input: ServerInput, node: Node): readonly number[] {
  const kubelet = [10250];
  if (!isServer(node)) return kubelet;
  const { registrationPort } = factsOf(input);
  const api = node.roles.includes('controlplane') ? [6443] : [];
  const etcd = datastoreOf(input) === 'etcd' && node.roles.includes('etcd') ? [2379, 2380] : [];
  return [...new Set([registrationPort, ...api, ...etcd, ...kubelet])];
}

/** `hostnames`: no two machines may have one name, or the second takes the first one's place in the cluster. */
export function hostnamesTask(input: ServerInput, after: readonly string[]): Task {
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
    machine: machineOf(input, admin),
    after,
    apply: script({ cluster: input.name, id, doing: 'comparing host names', stdin: values }, [body]),
    stdin: values,
    timeoutSeconds: 120,
  };
}
