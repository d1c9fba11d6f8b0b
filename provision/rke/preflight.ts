import { isObject } from '../../constructs/kube/kube-object';
import { RESULT_FUNCTIONS, MASK_FUNCTION, RUN_FUNCTIONS, SETUP, EXIT_TRAP } from '../shell/functions';
import { shellQuote } from '../shell/script';
import type { Machine, Task } from '../task/task';
import type { YamlObject } from './yaml';

/**
 * `<address>/preflight`: checks a machine, as the user that RKE logs in as, and reports all problems at once.
 * Changes nothing.
 */
export function preflightTask(machine: Machine, config: YamlObject, index: number): Task {
  return {
    id: `${machine.address}/preflight`,
    description: `look at ${machine.address}: user, Docker, SSH server, kernel`,
    // RKE does everything as this user, so the permissions of root do not matter.
    machine: { ...machine, asUser: true },
    after: [],
    apply: preflightScript(propsOf(config, index)),
    timeoutSeconds: 120,
  };
}

/**
 * The parts of the configuration that determine the requirements of a machine.
 *
 * @testonly
 */
export interface PreflightProps {
  /** The machine's path in the configuration: `nodes[0]`. */
  readonly where: string;
  /** The kubelet's `cgroup-driver`, if it is given. @default any driver of Docker is accepted */
  readonly cgroupDriver?: string;
  /** The kubelet refuses to start with swap. @default false, as in RKE */
  readonly failSwapOn?: boolean;
  /** Accept versions of Docker that RKE does not know. @default false */
  readonly ignoreDockerVersion?: boolean;
  /** @default '/var/run/docker.sock' */
  readonly dockerSocket?: string;
  /** Where the machine's files are: for tests. @default '' */
  readonly root?: string;
}

/**
 * The script of {@link preflightTask}.
 *
 * @testonly
 */
export function preflightScript(props: PreflightProps): string {
  const values = {
    where: props.where,
    root: props.root ?? '',
    want_cgroup: props.cgroupDriver ?? '',
    fail_swap: String(props.failSwapOn ?? false),
    ignore_docker: String(props.ignoreDockerVersion ?? false),
    socket: props.dockerSocket ?? '/var/run/docker.sock',
  };
  return [
    `# preflight of ${props.where}`,
    SETUP,
    `doing='looking at the machine'`,
    MASK_FUNCTION,
    RESULT_FUNCTIONS,
    EXIT_TRAP,
    RUN_FUNCTIONS,
    // Output of programs is dropped: there is no log on a machine before its first installation.
    'exec 2>/dev/null >/dev/null',
    ...Object.entries(values).map(([name, value]) => `${name}=${shellQuote(value)}`),
    PREFLIGHT_CHECKS,
    '',
  ].join('\n');
}

function propsOf(config: YamlObject, index: number): PreflightProps {
  const kubelet = at(at(config, 'services'), 'kubelet');
  const args = at(kubelet, 'extra_args');
  const nodes: unknown = config['nodes'];
  const socket = Array.isArray(nodes) ? at(nodes[index], 'docker_socket') : undefined;
  const driver = at(args, 'cgroup-driver');
  return {
    where: `nodes[${index}]`,
    ...(typeof driver === 'string' ? { cgroupDriver: driver } : {}),
    failSwapOn: (at(args, 'fail-swap-on') ?? (at(kubelet, 'fail_swap_on') === true ? 'true' : 'false')) === 'true',
    ignoreDockerVersion: config['ignore_docker_version'] === true,
    ...(typeof socket === 'string' && socket !== '' ? { dockerSocket: socket } : {}),
  };
}

function at(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

/**
 * RKE's requirements of a machine. Each finding says which line of which file to change. The script runs as
 * the user that RKE logs in as, so it skips what only root may read, with a note.
 *
 * Sources: RKE's documentation, "Requirements" (users and groups, SSH server, kernel, software);
 * K8sVersionDockerInfo of RKE 1.6 for Docker.
 */
const PREFLIGHT_CHECKS = String.raw`findings=''
bad() { findings="$findings$findings_end$1"; findings_end='
'; }
findings_end=''
me=$(id -un)
# FILE: the lines that set KEY there, as file:line: text.
lines_of() { pattern=$1; shift; grep -n -i -E -- "$pattern" "$@" /dev/null | sed "s|^$root||"; }

os=$(sed -n -e 's/^ID=//p' -e 's/^ID_LIKE=//p' "$root/etc/os-release" | tr -d '"' | tr '\n' ' ')
case " $os" in
  *' rhel'* | *' centos'* | *' fedora'* | *' rocky'* | *' almalinux'* | *' ol '*) redhat=1 ;;
  *) redhat=0 ;;
esac
if [ "$me" = root ] && [ "$redhat" = 1 ]; then
  bad "$where.user is root, but on $os(see /etc/os-release) root gets no SSH tunnel to Docker: make a user of the group docker (useradd -m -G docker rke), give it the SSH key, and name it as user"
fi

if ! have docker; then
  bad "Docker is not installed: RKE runs everything in it. Install a version that RKE knows, 20.10 to 27.2"
else
  said=$(docker -H "unix://$socket" version --format '{{.Server.Version}}' </dev/null 2>&1) && up=1 || up=0
  if [ "$up" = 0 ]; then
    case $said in
      *'ermission denied'*) bad "$me may not use $socket: add it to the group docker (usermod -aG docker $me; the line of docker in /etc/group) and log in anew" ;;
      *) bad "Docker does not answer at $socket: systemctl enable --now docker, and see journalctl -u docker" ;;
    esac
  else
    case $said in
      1.13.* | 17.03.* | 17.06.* | 17.09.* | 18.06.* | 18.09.* | 19.03.* | 20.10.* | 2[3-6].0.* | 26.1.* | 27.[0-2].*) ;;
      2[89].* | [3-9][0-9].* | 27.[3-9].*) note "Docker $said is newer than RKE 1.6 knows; later ones may know it, else set ignore_docker_version" ;;
      *)
        if [ "$ignore_docker" = true ]; then note "RKE does not know Docker $said"
        else bad "Docker $said is none that RKE knows: install 20.10 to 27.2, or set ignore_docker_version"; fi ;;
    esac
    driver=$(docker -H "unix://$socket" info --format '{{.CgroupDriver}}' </dev/null) || driver=''
    if [ -n "$want_cgroup" ] && [ -n "$driver" ] && [ "$want_cgroup" != "$driver" ]; then
      at=$(lines_of 'native.cgroupdriver' "$root/etc/docker/daemon.json")
      bad "services.kubelet.extra_args has cgroup-driver $want_cgroup, but Docker has $driver: in /etc/docker/daemon.json set \"exec-opts\": [\"native.cgroupdriver=$want_cgroup\"] ($(if [ -n "$at" ]; then printf 'now %s' "$at"; else printf 'no line says so now'; fi)) and restart Docker, or change extra_args to $driver"
    fi
  fi
fi

flags=$(grep -n -i '^[[:space:]]*MountFlags=' "$root"/etc/systemd/system/docker.service "$root"/etc/systemd/system/docker.service.d/*.conf "$root"/lib/systemd/system/docker.service "$root"/usr/lib/systemd/system/docker.service /dev/null | sed "s|^$root||" | head -n 1)
case $flags in
  '' | *=shared | *=) ;;
  *) bad "Docker hides the mounts of its containers ($flags): make it MountFlags=shared, or delete the line; then systemctl daemon-reload and systemctl restart docker" ;;
esac

sshd="$root/etc/ssh/sshd_config"
if [ -e "$sshd" ] && [ ! -r "$sshd" ]; then
  note "/etc/ssh/sshd_config is not for $me to read: see yourself that it has neither AllowTcpForwarding no nor AllowStreamLocalForwarding no"
elif [ -r "$sshd" ]; then
  # The first line for a keyword holds. Those of a Match block hold for some logins, so they are said as well.
  for key in AllowTcpForwarding AllowStreamLocalForwarding; do
    at=$(lines_of "^[[:space:]]*$key"'[[:space:]=]+"?(no|remote)' "$root"/etc/ssh/sshd_config.d/*.conf "$sshd" | head -n 3)
    if [ -n "$at" ]; then bad "the SSH server forbids the tunnel to Docker ($at): make it $key yes, then systemctl reload sshd"; fi
  done
  at=$(lines_of '^[[:space:]]*DisableForwarding[[:space:]=]+"?yes' "$root"/etc/ssh/sshd_config.d/*.conf "$sshd" | head -n 3)
  if [ -n "$at" ]; then bad "the SSH server forbids all tunnels ($at): delete the line, then systemctl reload sshd"; fi
  at=$(lines_of '^[[:space:]]*PermitTunnel[[:space:]=]+"?no' "$root"/etc/ssh/sshd_config.d/*.conf "$sshd" | head -n 3)
  if [ -n "$at" ]; then note "should RKE's tunnels be refused, make this PermitTunnel yes: $at"; fi
fi
version=$(ssh -V 2>&1 </dev/null | sed -n 's/^OpenSSH_\([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
if [ -n "$version" ]; then
  major=$(printf '%s' "$version" | cut -d ' ' -f 1)
  minor=$(printf '%s' "$version" | cut -d ' ' -f 2)
  if [ "$major" -lt 6 ] || { [ "$major" -eq 6 ] && [ "$minor" -lt 7 ]; }; then
    bad "OpenSSH $major.$minor cannot reach a socket through a tunnel: install 6.7 or newer (package openssh-server)"
  fi
fi

if [ "$fail_swap" = true ] && [ "$(wc -l <"$root/proc/swaps")" -gt 1 ]; then
  at=$(grep -n -E '^[^#]+[[:space:]]swap[[:space:]]' "$root/etc/fstab" /dev/null | sed "s|^$root||" | head -n 3)
  bad "swap is on, and the kubelet is told to refuse it: swapoff -a, and put a # before its line ($(if [ -n "$at" ]; then printf '%s' "$at"; else printf 'none in /etc/fstab; see systemctl list-units --type swap'; fi)); or set services.kubelet.extra_args fail-swap-on to false"
fi

file=/proc/sys/net/bridge/bridge-nf-call-iptables
if [ ! -e "$root$file" ]; then
  bad "$file is missing: modprobe br_netfilter, and write br_netfilter into /etc/modules-load.d/kubernetes.conf"
elif [ "$(cat "$root$file")" != 1 ]; then
  at=$(lines_of 'bridge-nf-call-iptables' "$root/etc/sysctl.conf" "$root"/etc/sysctl.d/*.conf | head -n 3)
  bad "$file is 0, so Services do not reach pods of the same machine: set net.bridge.bridge-nf-call-iptables = 1 in /etc/sysctl.d/kubernetes.conf ($(if [ -n "$at" ]; then printf 'now %s' "$at"; else printf 'no line says so now'; fi)), then sysctl --system"
fi

if [ -n "$findings" ]; then die PreflightFailed "$findings"; fi
finish`;
