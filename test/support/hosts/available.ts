import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { platform } from 'node:os';

const programs = ['bash', 'ip', 'tc', 'unshare', 'nsenter', 'pivot_root', 'mount', 'ssh', 'sshd', 'sudo'];
const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** What a host is made of, tried in namespaces that end with the script. */
const trial = `set -e
mount --make-rprivate /
mount -t tmpfs trial /mnt
mkdir /mnt/u /mnt/w /mnt/r
mount -t overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w trial /mnt/r
mount -t proc proc /mnt/r/proc
ip link add trial0 type bridge
ip link add trial1 type veth peer name trial2`;

let known: { readonly why: string | undefined } | undefined;

/**
 * Whether this machine can have test hosts: namespaces, an overlay file system and OpenSSH, as root on Linux.
 *
 * @returns undefined, or in one line what is missing
 */
export function hostsAvailable(): string | undefined {
  known ??= { why: whyNot() };
  return known.why;
}

function whyNot(): string | undefined {
  if (platform() !== 'linux') return `no SSH hosts of our own: they need Linux, this is ${platform()}`;
  if (process.getuid?.() !== 0) return 'no SSH hosts of our own: making namespaces and mounts needs root';
  const missing = programs.filter((program) => pathOf(program) === undefined);
  if (missing.length > 0) return `no SSH hosts of our own: ${missing.join(', ')} not installed`;
  const args = ['--net', '--mount', '--uts', '--pid', '--fork', '--kill-child', 'bash', '-c', trial];
  const { status, stderr } = spawnSync('unshare', args, { encoding: 'utf8' });
  if (status === 0) return undefined;
  return `no SSH hosts of our own: this system does not allow them (${stderr.trim().split('\n').at(-1) ?? ''})`;
}

/** Where a program is, in the folders that hosts look into. */
export function pathOf(program: string): string | undefined {
  return folders.map((folder) => join(folder, program)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // there is none, or it is not for us
  }
}
