import type { ValueSource, StdinValue } from '../task/task';
import { CLUSTER_KEY_PATH, WORK_DIR } from './cluster-yml';
import type { ClusterYmlFile, FileBastion, FileNode } from './read-cluster-yml';

/** A machine for the SSH client of the scripts. Its strings have passed the schemas of the kind Cluster. */
export interface SshTarget {
  readonly address: string;
  readonly port: number;
  readonly user: string;
  /** Path of its private key, relative to RKE's working directory. */
  readonly keyPath: string;
  /** @default not known */
  readonly hostKey?: string | undefined;
}

/** The machines that RKE connects to. */
export interface SshTargets {
  /** Control plane machines, which store copies of the state. */
  readonly controlPlane: readonly SshTarget[];
  /** Other machines, of which only the host keys are checked. */
  readonly others: readonly SshTarget[];
  readonly bastion: SshTarget | undefined;
}

/**
 * What to do about a machine whose host key is not known: refuse to connect, or accept the key that it shows.
 */
export type UnknownHosts = 'refuse' | 'accept';

/** The values with which a script connects to the machines. Their change is no reason to run again. */
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

/** Texts for the SSH client, without secrets. */
interface SshFiles {
  /**
   * `ssh_config(5)`: the bastion, then the control plane machines as m0, m1, and so on, then the others as
   * w0, w1. Its paths are relative to the run's directory. It connects only to machines whose key is in
   * `known_hosts`; the script decides which keys to accept on first use.
   */
  readonly config: string;
  /** The host keys that were given, one line per machine: its name in the config and the key. */
  readonly knownHosts: string;
  /** One line per control plane machine: its name in the config and its address. */
  readonly machines: string;
}

/**
 * The client's configuration for machines, behind a bastion if there is one: known host keys, one private key
 * per machine, no agent, no prompt.
 */
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

/** Groups machines by what the scripts do with them; `nodes` has all of them, in the order given. */
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

function keyPathOf(entry: unknown, config: Readonly<Record<string, unknown>>): string {
  const own = typeof entry === 'object' && entry !== null && 'ssh_key_path' in entry ? entry.ssh_key_path : undefined;
  const path = own ?? config['ssh_key_path'];
  return typeof path === 'string' ? path : CLUSTER_KEY_PATH;
}
