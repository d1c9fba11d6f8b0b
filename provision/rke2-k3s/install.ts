import { machineOf, type Node } from '../cluster/cluster-input';
import { FAIL_FUNCTION, SERVICE_FUNCTIONS, WAIT_FUNCTION } from '../shell/functions';
import { shellCommand, requireStdin, buildScript, shellQuote } from '../shell/script';
import type { StdinValue, Task } from '../task/task';
import { preflightId, changeTokenValue } from './change-token';
import { renderConfig, nodeConfigHash, secretFiles, joinTokenValue } from './config';
import { distributionInfo, type Rke2K3sInput } from './distribution';
import { nodeExistsValue } from './drain';
import { etcdIsHealthy } from './etcd';
import { recordImmutableSettings } from './immutable';
import { kubectlFunctions } from './kubectl';
import { isServer } from './layout';
import { rejoinAsNewMember, leaveBeforeUninstall, removalFactValues } from './membership';

/** Timeouts of the installer, and then of the start of the service, in seconds. */
const INSTALLER_SECONDS = 900;
const START_SECONDS = 600;
/** The longest that another run of a task may hold the lock of the machine, in seconds. */
export const MACHINE_LOCK_SECONDS = INSTALLER_SECONDS + START_SECONDS + 60;

/** `<address>/install`: configuration, installer, service. */
export function installTask(input: Rke2K3sInput, node: Node, after: readonly string[]): Task {
  const { label } = distributionInfo(input);
  const stdin = [joinTokenValue(input), ...secretFiles(input, node).map(({ value }) => value)];
  return {
    id: `${node.address}/install`,
    description: `Installs ${label} ${input.version} on ${node.address} as ${isServer(node) ? 'a server' : 'an agent'}`,
    machine: machineOf(node, input.sshKey),
    // The change token in stdin is an output of the preflight.
    after: [...after, preflightId(node)],
    apply: applyScript(input, node, [...stdin, nodeExistsValue(node)]),
    remove: uninstallScript(input, node),
    stdin: [...stdin, nodeExistsValue(node), changeTokenValue(node)],
    removeReadsStdin: false,
    timeoutSeconds: 2 * MACHINE_LOCK_SECONDS,
  };
}

function applyScript(input: Rke2K3sInput, node: Node, stdin: readonly StdinValue[]): string {
  const facts = distributionInfo(input);
  const kind = isServer(node) ? 'server' : 'agent';
  const props = {
    cluster: input.name,
    id: `${node.address}/install`,
    doing: `installing ${facts.label} ${input.version} on ${node.address}`,
    stdin,
    generation: nodeConfigHash(input, node),
    lockSeconds: MACHINE_LOCK_SECONDS,
    disks: [facts.dataFolder, '/usr/local', '/etc', '/tmp'],
  };
  return buildScript(props, [
    requireStdin(stdin),
    FAIL_FUNCTION,
    WAIT_FUNCTION,
    SERVICE_FUNCTIONS,
    kubectlFunctions(input),
    variables(input, node),
    INSTALLED_FUNCTIONS,
    isUpFunction(input, node),
    `if [ -f "$state/installation" ] && [ "$(cat "$state/installation")" != "$program $kind" ]; then
  die RoleChanged "this machine runs $(cat "$state/installation"), and is to run $program $kind. Remove the node from the cluster, then add it again"
fi
${rejoinAsNewMember(input, node)}
if [ "$node" != no ] && marked && in_place && is_up; then finish; fi
changed=true
printf '%s\\n' "$program $kind" | put "$state/installation" 600`,
    ...(kind === 'server' ? ['printf \'%s\' "$token" | put "$state/token" 600'] : []),
    runInstaller(input, kind),
    // If this change fails and is reverted, the marker of the earlier state is no longer true.
    'rm -f "$marker"',
    writeConfiguration(input, node),
    recordImmutableSettings(input, node),
    `doing="starting $unit"
restart
if ! wait_for ${START_SECONDS} is_up; then
  unit_lines
  broken NotUp "$unit on this machine is not up after ${START_SECONDS} s"
fi
in_place || die Failed "$program $(installed_version) runs on this machine, not $version"
mark
finish`,
  ]);
}

function variables(input: Rke2K3sInput, node: Node): string {
  const { program, service, configFolder } = distributionInfo(input);
  const kind = isServer(node) ? 'server' : 'agent';
  return `program=${program}
kind=${kind}
unit=${service[kind]}
version=${shellQuote(input.version)}
config=${configFolder}`;
}

const INSTALLED_FUNCTIONS = `installed_version() {
  if have "$program"; then "$program" --version </dev/null 2>>"$log" 3>&- | awk 'NR == 1 { print $3 }'; fi
}
in_place() {
  [ "$(installed_version)" = "$version" ] && [ -s "$config/config.yaml" ] && [ -s "$config/config.yaml.d/50-kindred.yaml" ]
}`;

/** `is_up`: whether the machine itself sees its node as up. */
function isUpFunction(input: Rke2K3sInput, node: Node): string {
  if (!isServer(node)) return 'is_up() { active; }';
  if (node.roles.includes('controlplane')) return 'is_up() { active && api_answers; }';
  // It has no API, so etcd reports whether it is healthy. The service may still count as starting.
  return `is_up() { ${etcdIsHealthy(input)}; }`;
}

/**
 * Downloads the installer if needed, and runs it unless the version is already installed. It receives no
 * secret.
 */
function runInstaller(input: Rke2K3sInput, kind: 'server' | 'agent'): string {
  const { installer = {} } = input;
  const file = installer.path === undefined ? '"$state/installer"' : shellQuote(installer.path);
  const artifacts = input.distribution === 'k3s' ? installer.artifacts : undefined;
  return [
    // An installer that died halfway may have left the executable of the right version without its service.
    'if [ "$(installed_version)" != "$version" ] || [ -e "$state/installing" ]; then',
    `  printf '%s\\n' "$version" | put "$state/installing" 600`,
    ...(installer.path === undefined
      ? [downloadInstaller(installer.url ?? distributionInfo(input).installerUrl, installer.sha256 !== undefined)]
      : []),
    `  if [ ! -s ${file} ]; then die InstallerFailed "there is no installer at "${file}" on this machine"; fi`,
    ...(installer.sha256 === undefined ? [] : [verifyChecksum(file, installer.sha256)]),
    ...(artifacts === undefined ? [] : [copyK3sBinary(artifacts)]),
    '  doing="running the installer of $program $version"',
    `  if ! (umask 022; run timeout ${INSTALLER_SECONDS} env ${shellCommand(...environment(input, kind))} sh ${file}); then`,
    '    broken InstallerFailed "the installer of $program $version failed on this machine"',
    '  fi',
    '  if [ "$(installed_version)" != "$version" ]; then',
    '    die InstallerFailed "the installer ended well, but $program $(installed_version) is on this machine instead of $version"',
    '  fi',
    '  rm -f "$state/installing"',
    'fi',
  ].join('\n');
}

/**
 * Downloads the installer to `$state/installer`, with curl, or else wget.
 *
 * A download by https does not follow a redirect to http, with which anyone on the network could choose what
 * root runs. wget cannot distinguish redirects, so it follows none, unless the checksum is known. BusyBox'
 * wget always follows them, but fails because it does not know the option.
 *
 * @param url - http or https
 * @param isPinned - the installer's SHA-256 is known, and is checked afterwards
 * @testonly
 */
export function downloadInstaller(url: string, isPinned: boolean): string {
  const isSecure = url.startsWith('https://');
  const curl = `curl -sSfL${isSecure ? ' --proto =https --proto-redir =https' : ''}`;
  const wget = `wget -q${isSecure && !isPinned ? ' --max-redirect=0' : ''}`;
  const failed = (help: string): string => `broken DownloadFailed ${shellQuote(`${url} cannot be downloaded${help}`)}`;
  const noCurl =
    isSecure && !isPinned ? ' by this wget without following a redirect. Install curl, or give installer.sha256' : '';
  return `  doing="downloading the installer"
  rm -f "$state/installer"
  if have curl; then
    run ${curl} --retry 3 --connect-timeout 15 --max-time 300 -o "$state/installer" ${shellQuote(url)} || ${failed('')}
  else
    run ${wget} -T 60 -O "$state/installer" ${shellQuote(url)} || ${failed(noCurl)}
  fi`;
}

function verifyChecksum(file: string, sha256: string): string {
  return `  if [ "$(sha256sum <${file} | cut -d ' ' -f 1)" != ${shellQuote(sha256.toLowerCase())} ]; then
    die InstallerFailed "the installer does not have the SHA-256 that it should have: it changed, or something else answered"
  fi`;
}

function copyK3sBinary(folder: string): string {
  const from = shellQuote(`${folder}/k3s`);
  return `  cp ${from} /usr/local/bin/k3s.kindred-new || broken InstallerFailed ${shellQuote(`${folder}/k3s cannot be copied`)}
  chmod 755 /usr/local/bin/k3s.kindred-new
  mv -f /usr/local/bin/k3s.kindred-new /usr/local/bin/k3s`;
}

function environment(input: Rke2K3sInput, kind: 'server' | 'agent'): readonly string[] {
  const { version, installer = {} } = input;
  if (input.distribution === 'rke2') {
    return [
      `INSTALL_RKE2_VERSION=${version}`,
      `INSTALL_RKE2_TYPE=${kind}`,
      // With SELinux, packages are needed for the policy.
      ...(input.options.selinux === true ? [] : ['INSTALL_RKE2_METHOD=tar']),
      ...(installer.artifacts === undefined ? [] : [`INSTALL_RKE2_ARTIFACT_PATH=${installer.artifacts}`]),
    ];
  }
  return [
    `INSTALL_K3S_VERSION=${version}`,
    `INSTALL_K3S_EXEC=${kind}`,
    'INSTALL_K3S_SKIP_START=true',
    'INSTALL_K3S_SKIP_ENABLE=true',
    ...(installer.artifacts === undefined ? [] : ['INSTALL_K3S_SKIP_DOWNLOAD=true']),
  ];
}

function writeConfiguration(input: Rke2K3sInput, node: Node): string {
  const text = renderConfig(input, node);
  const files = secretFiles(input, node);
  const stale = files.some(({ path }) => path.endsWith('/registries.yaml')) ? [] : ['rm -f "$config/registries.yaml"'];
  return [
    'doing="writing the configuration"',
    `printf '%s' ${shellQuote(text)} | put "$config/config.yaml" 600`,
    ...files.map(({ path, value }) => `printf '%s' "$${value.name}" | put ${shellQuote(path)} 600`),
    ...stale,
  ].join('\n');
}

/** Timeout of an uninstaller, in seconds. */
const UNINSTALL_SECONDS = 600;

/**
 * Uninstalls the distribution from a machine, and deletes our state there. It completes an interrupted
 * uninstallation, and leaves a machine alone that has nothing of ours.
 */
function uninstallScript(input: Rke2K3sInput, node: Node): string {
  const { label, program, service, configFolder, dataFolder, uninstallers, dataVariable } = distributionInfo(input);
  const kind = isServer(node) ? 'server' : 'agent';
  const props = {
    cluster: input.name,
    id: `${node.address}/install`,
    doing: `removing ${label} from ${node.address}`,
    stdin: removalFactValues,
    lockSeconds: UNINSTALL_SECONDS + 60,
  };
  return buildScript(props, [
    FAIL_FUNCTION,
    SERVICE_FUNCTIONS,
    kubectlFunctions(input),
    `program=${program}
unit=${service[kind]}
if [ ! -f "$state/installation" ]; then
  note "nothing of the cluster is installed on this machine"
  rm -rf "$state/marker" "$state/token" "$state/installer" "$state/unchangeable" "$state/installing" "$state/turn" "$state/joined" "$state/standing"
  finish
fi
changed=true`,
    leaveBeforeUninstall(input, node),
    `for uninstaller in ${uninstallers[kind].join(' ')}; do
  if have "$uninstaller"; then
    # It may end with an error because half of what it takes away is gone already; what counts is what is left.
    run timeout ${UNINSTALL_SECONDS} env ${dataVariable}=${shellQuote(dataFolder)} "$uninstaller" || note "$uninstaller ended with an error"
    break
  fi
done
if active || starting; then detached systemctl stop "$unit" || broken UninstallFailed "systemctl stop $unit fails"; fi
run systemctl disable "$unit" || :
if active || starting; then broken UninstallFailed "$unit still runs on this machine"; fi`,
    `for left in ${configFolder} ${['server', 'agent', 'bin', 'data', 'storage'].map((name) => shellQuote(`${dataFolder}/${name}`)).join(' ')}; do
  run rm -rf "$left" || broken UninstallFailed "$left cannot be deleted"
done
for left in ${['/usr/local/bin', '/usr/bin', '/opt/rke2/bin'].map((folder) => `${folder}/${program}`).join(' ')}; do run rm -f "$left"; done
log=/dev/null
exec >/dev/null 2>&1
# The lock stays: someone may be waiting for it.
rm -rf "$state/log" "$state/marker" "$state/token" "$state/installer" "$state/unchangeable" "$state/installing" "$state/turn" "$state/joined" "$state/standing"
rm -f "$state/installation"
finish`,
  ]);
}
