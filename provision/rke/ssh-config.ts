import type { ValueSource, StdinValue } from '../task/task';
import { CLUSTER_KEY_PATH, WORK_DIR } from './cluster-yml';
import type { ClusterYmlFile, FileBastion, FileNode } from './read-cluster-yml';

/** A machine for the SSH client of the scripts. Its strings have passed the patterns of the kind Cluster. */
export interface SshTarget {
  readonly address: string;
  readonly port: number;
  readonly user: string;
  /** Path of its private key, relative to RKE's working directory. */
  readonly keyPath: string;
  /** @default not known */
  readonly hostKey?: string | undefined;
}

/** What to do about a machine whose host key is not known: not to talk to it, or to take what it shows. */
export type UnknownHosts = 'refuse' | 'accept';

/** The machines that RKE goes to. */
export interface SshTargets {
  /** They keep copies of the state. */
  readonly controlPlane: readonly SshTarget[];
  /** They only have their host keys checked. */
  readonly others: readonly SshTarget[];
  readonly bastion: SshTarget | undefined;
}

/** Texts for the SSH client, all of them free of secrets. */
interface SshFiles {
  /**
   * `ssh_config(5)`: the bastion, then the control plane machines as m0, m1, and so on, then the others as w0, w1. Its paths are relative to the
   * run's folder. It talks only to machines whose key stands in `known_hosts`; who may be met for the first time, the script decides.
   */
  readonly config: string;
  /** The keys that were given, a line a machine: its name in the config and the key. */
  readonly knownHosts: string;
  /** A line a control plane machine: its name in the config and its address. */
  readonly machines: string;
}

/** The client's configuration for some machines, behind a bastion if there is one: known host keys, one key a machine, no agent, no questions. */
function renderSshFiles({ controlPlane, others, bastion }: SshTargets, workFolder: string): SshFiles {
  const named = controlPlane.map((target, i) => ({ ...target, alias: `m${i}` }));
  const all = [
    ...(bastion === undefined ? [] : [{ ...bastion, alias: BASTION }]),
    ...named,
    ...others.map((target, i) => ({ ...target, alias: `w${i}` })),
  ];
  const hosts = all.flatMap(({ alias, address, port, user, keyPath }) => [
    `Host ${alias}`,
    `  HostName ${address}`,
    `  HostKeyAlias ${alias}`,
    `  Port ${port}`,
    `  User ${user}`,
    `  IdentityFile ${workFolder}/${keyPath}`,
    ...(bastion === undefined || alias === BASTION ? [] : [`  ProxyJump ${BASTION}`]),
  ]);
  return {
    config: `${[...hosts, ...COMMON].join('\n')}\n`,
    knownHosts: all.map(({ alias, hostKey }) => (hostKey === undefined ? '' : `${alias} ${hostKey}\n`)).join(''),
    machines: named.map(({ alias, address }) => `${alias} ${address}\n`).join(''),
  };
}

const BASTION = 'bastion';

const COMMON = [
  'Host *',
  '  BatchMode yes',
  '  IdentitiesOnly yes',
  '  IdentityAgent none',
  '  ForwardAgent no',
  '  UserKnownHostsFile known_hosts',
  '  GlobalKnownHostsFile /dev/null',
  '  StrictHostKeyChecking yes',
  '  UpdateHostKeys no',
  '  ControlMaster no',
  '  ConnectTimeout 15',
  '  ServerAliveInterval 10',
  '  ServerAliveCountMax 3',
  '  LogLevel ERROR',
] as const;

/** The machines by what the scripts do with them; `nodes` has all of them, in the order given. */
export function groupTargets<T extends SshTarget & Pick<FileNode, 'roles'>>(
  nodes: readonly T[],
  bastion: SshTarget | undefined,
): SshTargets & { readonly nodes: readonly T[] } {
  const isControlPlane = ({ roles }: T): boolean => roles.includes('controlplane');
  return {
    nodes,
    controlPlane: nodes.filter(isControlPlane),
    others: nodes.filter((node) => !isControlPlane(node)),
    bastion,
  };
}

/**
 * The machines of a cluster.yml, each with the SSH key that it names.
 *
 * @param hostKeys - public host keys by address
 */
export function fileTargets(
  { nodes, bastion }: Pick<ClusterYmlFile, 'bastion' | 'nodes'>,
  config: Readonly<Record<string, unknown>>,
  hostKeys: Readonly<Record<string, string>> = {},
): SshTargets & { readonly nodes: readonly (FileNode & SshTarget)[] } {
  const withKeys = <T extends FileBastion>(login: T, field: unknown): T & SshTarget => ({
    ...login,
    keyPath: keyPathOf(field, config),
    hostKey: hostKeys[login.address],
  });
  const entries = Array.isArray(config['nodes']) ? (config['nodes'] as readonly unknown[]) : [];
  return groupTargets(
    nodes.map((node, i) => withKeys(node, entries[i])),
    bastion && withKeys(bastion, config['bastion_host']),
  );
}

/** What a script reads to connect to the machines. None of it is a reason to run again. */
export function connectionStdin(
  targets: SshTargets,
  { unknownHosts = 'refuse', hostKeys }: { readonly unknownHosts?: UnknownHosts; readonly hostKeys?: ValueSource },
): readonly StdinValue[] {
  const { config, knownHosts, machines } = renderSshFiles(targets, WORK_DIR);
  return [
    { name: 'ssh_config', from: { text: config }, volatile: true },
    { name: 'known_hosts', from: { text: knownHosts }, volatile: true },
    { name: 'unknown_hosts', from: { text: unknownHosts }, volatile: true },
    { name: 'machines', from: { text: machines }, volatile: true },
    ...(hostKeys === undefined ? [] : [{ name: 'host_keys', from: hostKeys, volatile: true }]),
  ];
}

function keyPathOf(entry: unknown, config: Readonly<Record<string, unknown>>): string {
  const own = typeof entry === 'object' && entry !== null && 'ssh_key_path' in entry ? entry.ssh_key_path : undefined;
  const path = own ?? config['ssh_key_path'];
  return typeof path === 'string' ? path : CLUSTER_KEY_PATH;
}
