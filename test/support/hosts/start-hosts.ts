import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { platform } from 'node:os';
import { join } from 'node:path';
import type { ObjectKeyRef } from '../../../constructs/kind/reads';
import { startNamespaceProcess, startHostNetwork, type HostNetwork, type Link } from './host-network';
import { NamespacedHost } from './namespaced-host';

/** Which hosts a test wants. */
export interface HostsOptions {
  /** Their names, which are their host names. @default host-1, host-2, ... */
  readonly names?: readonly string[];
  /** How many. @default 1, or as many as there are names */
  readonly count?: number;
  /** Puts all of them behind one more, named `bastion`, that alone can be reached from here. @default false */
  readonly bastion?: boolean;
  /** How much fits on the disk of each, besides what the machine has; kept in memory. @default '4g' */
  readonly diskSize?: string;
  /** Files and folders of this machine that every host sees, read-only, by the path that they have there. */
  readonly mounts?: Readonly<Record<string, string>>;
  /** Lines for `sshd_config` that win over the others. */
  readonly sshdConfig?: readonly string[];
}

/** The hosts of a test. */
export interface Hosts {
  readonly all: readonly NamespacedHost[];
  /** Only with the option. It is not one of `all`. */
  readonly bastion: NamespacedHost | undefined;
  /** The address at which the hosts reach this process. */
  readonly gateway: string;
  get(name: string): NamespacedHost;
  /** The private key of the host whose `machine()` named it so. */
  privateKey(ref: ObjectKeyRef): string;
  /** Starts one more. */
  add(name: string): Promise<NamespacedHost>;
  /** Ends all of them and removes everything of theirs. */
  end(): Promise<void>;
}

/**
 * Starts machines of the test's own: each with its own network, processes, host name, users, disk (a layer over this machine's, in
 * memory) and SSH server.
 *
 * Guarantees: nothing outlives this process, however it ends: everything hangs on processes that end with it, and the kernel takes the
 * rest away. Any number of test files may have hosts at once.
 *
 * @throws when the machine cannot have them; ask `hostsAvailable()` first
 */
export async function startHosts(options: HostsOptions = {}): Promise<Hosts> {
  const names = options.names ?? Array.from({ length: options.count ?? 1 }, (_, i) => `host-${i + 1}`);
  const lab = await startHostNetwork();
  const group = new HostGroup(lab, options);
  try {
    const [bastion] = await Promise.all([
      options.bastion === true ? group.start('bastion', ['outer', 'inner']) : undefined,
      ...names.map((name) => group.add(name)),
    ]);
    group.bastion = bastion;
    return group;
  } catch (error) {
    await group.end();
    throw error;
  }
}

class HostGroup implements Hosts {
  bastion: NamespacedHost | undefined;
  readonly #byName = new Map<string, NamespacedHost>();
  #started = 0;

  constructor(
    private readonly lab: HostNetwork,
    private readonly options: HostsOptions,
  ) {}

  get all(): readonly NamespacedHost[] {
    return [...this.#byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  get gateway(): string {
    return this.lab.gateway;
  }

  get(name: string): NamespacedHost {
    const found = this.#byName.get(name);
    if (found === undefined) throw new Error(`there is no host ${name}`);
    return found;
  }

  privateKey({ name }: ObjectKeyRef): string {
    return (name === this.bastion?.name ? this.bastion : this.get(name)).privateKey;
  }

  async add(name: string): Promise<NamespacedHost> {
    const host = await this.start(name, [this.options.bastion === true ? 'inner' : 'outer']);
    this.#byName.set(name, host);
    return host;
  }

  async start(name: string, networks: readonly Link['network'][]): Promise<NamespacedHost> {
    const index = ++this.#started;
    const links = networks.map((network, i) => ({
      name: `eth${i}`,
      port: `h${index}p${i}`,
      network,
      address: `10.203.${this.lab.number}.${(network === 'outer' ? 10 : 140) + index}`,
    }));
    const mounts = Object.entries(this.options.mounts ?? {}).map(([target, source]) => `${source}:${target}`);
    const command = ['bash', join(__dirname, 'init.sh'), name, this.options.diskSize ?? '4g', ...mounts];
    const guarded = await startNamespaceProcess(['--net', '--mount', '--uts', '--ipc'], command);
    const parts = { name, guarded, lab: this.lab, links, sshdConfig: this.options.sshdConfig ?? [] };
    this.#guards.push(guarded);
    return NamespacedHost.setUp(parts);
  }

  readonly #guards: { end(): Promise<void> }[] = [];

  async end(): Promise<void> {
    await Promise.all([...this.#guards.map((guard) => guard.end()), this.lab.end()]);
  }
}

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
