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
export interface SshFiles {
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
export function sshFiles({ controlPlane, others, bastion }: SshTargets, workFolder: string): SshFiles {
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
