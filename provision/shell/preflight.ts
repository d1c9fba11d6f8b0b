/**
 * Checks of a preflight: each examines one property of the machine, and calls `problem WHERE WHAT` (must be
 * changed) or `warn TEXT`. None changes anything. `WHERE` is a field of the node, or a file or setting of the
 * machine.
 */

import { shellQuote } from './script';

/**
 * The functions that checks call, and `report`, which comes last and reports all problems of a machine at
 * once.
 */
export function preflightFunctions(address: string): string {
  return `problems=''
count=0
problem() {
  count=$((count + 1))
  problems="$problems
  - $1: $2"
}
warn() { note "node ${address}: $1"; }
report() {
  if [ "$count" -gt 0 ]; then
    die PreflightFailed "node ${address}: $count thing(s) must be changed before anything is done:$problems"
  fi
  finish
}`;
}

/** The programs that scripts run must be installed. */
export function requirePrograms(programs: readonly string[]): string {
  return `for needed in ${programs.map(shellQuote).join(' ')}; do
  have "$needed" || problem "the program $needed" 'is missing; install it'
done`;
}

/** A program for downloads must be installed. */
export const REQUIRE_DOWNLOADER = `have curl || have wget || problem 'the program curl' 'is missing, and wget too; install one of them'`;

/** The processor must be one of these, by the kernel's name. */
export function checkArchitecture(names: readonly string[]): string {
  const list = names.join(', ');
  return `case $(uname -m) in
  ${names.join(' | ')}) ;;
  *) problem 'the processor' "is $(uname -m); the distribution is made for ${list}" ;;
esac`;
}

/** Kubernetes' limit for label values: a node's name is the value of `kubernetes.io/hostname`. */
const MAX_NODE_NAME = 63;

/**
 * The machine's host name, or the node's override, must be valid for a node. Gives the output `hostname` if
 * it is.
 */
export function checkHostName(override: string | undefined): string {
  const name =
    override === undefined ? `$(hostname 2>/dev/null || cat /proc/sys/kernel/hostname)` : shellQuote(override);
  const where = shellQuote(override === undefined ? "the machine's host name" : 'hostnameOverride');
  return `name=${name}
# As RKE2 and K3s make it the node's name.
name=$(printf '%s' "$name" | tr '[:upper:]' '[:lower:]')
remedy='(hostnamectl hostname NAME), or set hostnameOverride'
case $name in
  '' | localhost | localhost.* | *[!a-z0-9.-]* | -* | .* | *- | *. | *..* | *.-* | *-.*)
    problem ${where} "is \\"$name\\", which no node can be called; give it one of letters, digits and - $remedy" ;;
  *)
    if [ "\${#name}" -gt ${MAX_NODE_NAME} ]; then
      problem ${where} "is \\"$name\\", of \${#name} characters; a node's name has at most ${MAX_NODE_NAME}: give it a shorter one $remedy"
    else
      # A name is no secret: it must show where something of that name is complained of.
      kept=$secrets
      give hostname "$name"
      secrets=$kept
    fi ;;
esac`;
}

/** The disk of a directory, existing or not, must have free space. */
export function checkFreeDisk(folder: string, mebibytes: number): string {
  return `folder=${shellQuote(folder)}
while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
free=$(df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1024) }')
if [ "\${free:-0}" -lt ${mebibytes} ]; then
  problem "the disk of $folder" "has \${free:-0} MiB free; ${mebibytes} MiB are needed: make room on it"
fi`;
}

/** Nothing may listen on these TCP ports. */
export function checkFreePorts(ports: readonly number[]): string {
  const hex = ports.map((port) => port.toString(16).toUpperCase().padStart(4, '0')).join(' ');
  return `for port in ${hex}; do
  if cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port="$port" '$4 == "0A" && $2 ~ ":" port "$" { found = 1 } END { exit !found }'; then
    port=$(printf '%d' "0x$port")
    problem "port $port" "is in use on the machine (ss -ltnp says by what); stop that"
  fi
done`;
}

/** Warns of swap, which the distributions tolerate. */
export const CHECK_SWAP = `if [ "$(awk 'END { print NR }' /proc/swaps 2>/dev/null || echo 0)" -gt 1 ]; then warn 'swap is on: pods may be slow, and their memory limits are not kept exactly'; fi`;

/** The kernel must be able to filter traffic on bridges. */
export const CHECK_BRIDGE_MODULE = `if [ ! -d /proc/sys/net/bridge ] && ! run modprobe -n br_netfilter; then
  problem 'the kernel module br_netfilter' 'is neither loaded nor can it be; install the modules of the running kernel, or reboot into one that has them'
fi`;

/** A clock that is far off makes certificates invalid. */
export const CHECK_CLOCK = `if [ "$(date +%Y)" -lt 2024 ]; then
  problem 'the clock' "says $(date -u +%Y-%m-%d); set it, and let chrony or systemd-timesyncd keep it"
elif have timedatectl && [ "$(timedatectl show -p NTPSynchronized --value 2>/dev/null </dev/null)" = no ]; then
  warn 'the clock is not kept by NTP: certificates fail when it is off'
fi`;

/** Warns of firewalls and network managers that are known to cut pods off. */
export const CHECK_NETWORK_SERVICES = `if have systemctl; then
  if detached systemctl is-active --quiet firewalld; then
    warn 'firewalld runs: open the ports of the distribution and the networks of pods and Services, or stop it'
  fi
  if detached systemctl is-active --quiet nm-cloud-setup.service; then
    warn 'nm-cloud-setup runs, which takes away the routes of pods: disable it and reboot'
  fi
fi
if [ -d /etc/NetworkManager/conf.d ] && ! grep -qs 'unmanaged-devices.*cali' /etc/NetworkManager/conf.d/*; then
  warn 'NetworkManager is there: tell it to leave cali*, flannel* and cni* alone (unmanaged-devices)'
fi`;

/** Warns of enforcing SELinux without the option `selinux`. */
export const CHECK_SELINUX = `if have getenforce && [ "$(getenforce 2>/dev/null)" = Enforcing ]; then
  warn 'SELinux enforces, but the option selinux is not set: containers may be refused what they need'
fi`;

/** systemd must be installed. */
export const CHECK_SYSTEMD = `have systemctl || problem 'systemd' 'is missing; RKE2 and K3s run as its services'`;

interface ForeignInstallationProps {
  /** Directory of all clusters' state. */
  readonly stateFolder: string;
  /** Executables that show that a distribution is installed. */
  readonly programs: readonly string[];
  /** Directories that show that one was installed. */
  readonly folders: readonly string[];
}

/**
 * Nothing may be installed by others. Sets `ours` to 1 when this cluster is already installed here, else to
 * nothing.
 */
export function checkForeignInstallation({ stateFolder, programs, folders }: ForeignInstallationProps): string {
  return `ours=''
if [ -f "$state/installation" ]; then ours=1; fi
for other in ${shellQuote(stateFolder)}/*/installation; do
  if [ -f "$other" ] && [ "$other" != "$state/installation" ]; then
    problem 'the machine' "belongs to the cluster $(basename "$(dirname "$other")"); take it out of that first"
    ours=1
  fi
done
if [ -z "$ours" ]; then
  for program in ${programs.map(shellQuote).join(' ')}; do
    if have "$program"; then problem "$(command -v "$program")" 'is on the machine and was not put there by this cluster; uninstall it first'; fi
  done
  for folder in ${folders.map(shellQuote).join(' ')}; do
    if [ -e "$folder" ]; then problem "$folder" 'is left of another installation; move it away'; fi
  done
fi`;
}

/** Checks that apply only before the installation. */
export function unlessInstalled(pieces: readonly string[]): string {
  return ['if [ -z "$ours" ]; then', ...pieces, 'fi'].join('\n');
}
