import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { platform } from 'node:os';
import path from 'node:path';
import { findProgram } from '../assets/process';
import { maxNodes } from './network';

/** Where packages put programs that only root runs; PATH may lack these folders. */
const adminFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** The PATH of a node. */
export function nodePath(): string {
  return [process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin', ...adminFolders].join(':');
}

const programs = ['containerd', 'ctr', 'runc', 'iptables', 'ip', 'unshare', 'nsenter', 'findmnt', 'tar'];
const plugins = ['bridge', 'host-local', 'loopback', 'portmap'];

/** Where Debian's package and the plugins' own releases put them. */
const pluginFolders = ['/usr/lib/cni', '/opt/cni/bin'];

/** The folder of the CNI plugins; undefined when there is none with all that are needed. */
export function cniPluginFolder(): string | undefined {
  return pluginFolders.find((folder) => plugins.every((name) => existsSync(path.join(folder, name))));
}

/** Tries what a node needs of the kernel, in namespaces that are removed when the script ends. */
const trial = `set -e
mount --make-rprivate /
mount -t tmpfs trial /run
mkdir /run/l /run/u /run/w /run/m
mount -t overlay -o lowerdir=/run/l,upperdir=/run/u,workdir=/run/w trial /run/m
ip link add trial0 type bridge
ip link add trial1 type veth peer name trial2
iptables -t nat -A POSTROUTING -m comment --comment trial -m mark --mark 1 -j MASQUERADE
iptables -t nat -A OUTPUT -m statistic --mode random --probability 0.5 -j RETURN`;

/** What a node hides behind folders of its own: nothing that it needs may be below them. */
const hiddenFolders = ['/run/', '/var/run/', '/var/lib/', '/var/log/'];

/**
 * Whether real nodes can run on this machine.
 *
 * @param folders - that a node must see: of the run, and of the cached programs
 * @returns undefined, or in one line what is missing
 */
export function nodeProblem(count: number, folders: readonly string[]): string | undefined {
  if (!Number.isInteger(count) || count < 1 || count > maxNodes) return `there can be 1 to ${maxNodes}, not ${count}`;
  if (platform() !== 'linux') return `they need Linux, this is ${platform()}`;
  if (process.getuid?.() !== 0) return 'making namespaces and mounts needs root';
  const missing = programs.filter((name) => findProgram(name, nodePath()) === undefined);
  if (missing.length > 0) return `${missing.join(', ')} not installed (Debian: containerd, runc, iptables, iproute2)`;
  if (cniPluginFolder() === undefined) {
    return `no CNI plugins ${plugins.join(', ')} in ${pluginFolders.join(' or ')} (Debian: containernetworking-plugins)`;
  }
  const hidden = folders.find((folder) =>
    hiddenFolders.some((prefix) => `${path.resolve(folder)}/`.startsWith(prefix)),
  );
  if (hidden !== undefined) return `${hidden} is in a folder that a node hides (${hiddenFolders.join(', ')})`;
  const namespaces = ['--pid', '--fork', '--kill-child', '--mount', '--net', '--uts', '--ipc', '--cgroup'];
  const env = { ...process.env, PATH: nodePath() };
  const { status, stderr } = spawnSync('unshare', [...namespaces, 'sh', '-c', trial], { env, encoding: 'utf8' });
  if (status === 0) return undefined;
  return `this system does not allow what they need (${stderr.trim().split('\n').at(-1) ?? ''})`;
}
