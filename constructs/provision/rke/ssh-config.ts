/** A machine for the SSH client of the scripts. Its strings have passed the patterns of `config/`. */
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

/** Texts for the SSH client, all of them free of secrets. */
export interface SshFiles {
  /** `ssh_config(5)`: the machines as m0, m1, and so on. Its paths are relative to the run's folder. */
  readonly config: string;
  readonly knownHosts: string;
  /** A line a machine: its name in the config and its address. */
  readonly machines: string;
}

/** The client's configuration for some machines, behind a bastion if there is one: pinned host keys, one key a machine, no agent, no questions. */
export function sshFiles(
  targets: readonly SshTarget[],
  bastion: SshTarget | undefined,
  unknownHosts: UnknownHosts,
  workFolder: string,
): SshFiles {
  const named = targets.map((target, i) => ({ ...target, alias: `m${i}` }));
  const all = [...named, ...(bastion === undefined ? [] : [{ ...bastion, alias: 'bastion' }])];
  const hosts = all.flatMap(({ alias, address, port, user, keyPath }) => [
    `Host ${alias}`,
    `  HostName ${address}`,
    `  HostKeyAlias ${alias}`,
    `  Port ${port}`,
    `  User ${user}`,
    `  IdentityFile ${workFolder}/${keyPath}`,
    ...(bastion === undefined || alias === 'bastion' ? [] : ['  ProxyJump bastion']),
  ]);
  return {
    config: `${[...hosts, ...common(unknownHosts)].join('\n')}\n`,
    knownHosts: all.map(({ alias, hostKey }) => (hostKey === undefined ? '' : `${alias} ${hostKey}\n`)).join(''),
    machines: named.map(({ alias, address }) => `${alias} ${address}\n`).join(''),
  };
}

function common(unknownHosts: UnknownHosts): readonly string[] {
  return [
    'Host *',
    '  BatchMode yes',
    '  IdentitiesOnly yes',
    '  IdentityAgent none',
    '  ForwardAgent no',
    '  UserKnownHostsFile known_hosts',
    '  GlobalKnownHostsFile /dev/null',
    `  StrictHostKeyChecking ${unknownHosts === 'accept' ? 'accept-new' : 'yes'}`,
    '  UpdateHostKeys no',
    '  ControlMaster no',
    '  ConnectTimeout 15',
    '  ServerAliveInterval 10',
    '  ServerAliveCountMax 3',
    '  LogLevel ERROR',
  ];
}
