import type { Machine } from '../../../provision/task/task';
import { MachineError } from './transport';

/** A machine on the way, with the files that the client reads for it. */
export interface Hop {
  readonly machine: Omit<Machine, 'bastion'>;
  /** Path of the private key. */
  readonly keyFile: string;
  /** Path of the host keys. */
  readonly knownHostsFile: string;
  /** Take a host key that is not known, and write it down. */
  readonly acceptNew: boolean;
}

/** What the client calls the machines: in its configuration, its host keys and its messages. */
export const TARGET = 'kindred-machine';
export const BASTION = 'kindred-bastion';

/** Seconds until a machine that does not answer counts as gone. */
const ALIVE = { intervalSeconds: 10, count: 3 } as const;
const CONNECT_TIMEOUT_SECONDS = 15;

/**
 * The configuration of one run of the ssh client. With it, neither the user's nor the system's is read; nothing is asked; no agent,
 * no forwarding, no shared connection.
 *
 * @throws MachineError `InvalidMachine` for an address, a user or a port that is none
 */
export function sshConfig(target: Hop, bastion?: Hop): string {
  const hops = bastion === undefined ? [] : [...block(BASTION, bastion), ''];
  const jump = bastion === undefined ? [] : [`  ProxyJump ${BASTION}`];
  return [...hops, ...block(TARGET, target), ...jump, '', 'Host *', ...common, ''].join('\n');
}

/** A line of a file of host keys. */
export function knownHostLine(name: string, hostKey: string): string {
  if (!/^[a-z0-9@.-]+ [A-Za-z0-9+/]+=*$/.test(hostKey)) {
    throw new MachineError(
      'InvalidMachine',
      'a host key must be its type, a space, and base64, as in ssh_host_ed25519_key.pub',
    );
  }
  return `${name} ${hostKey}\n`;
}

/** `user@address:port` for messages. */
export function endpointOf({ address, port = 22, user = 'root' }: Omit<Machine, 'bastion'>): string {
  return `${user}@${address}${port === 22 ? '' : ` port ${port}`}`;
}

const common = [
  'BatchMode yes',
  'PreferredAuthentications publickey',
  'IdentitiesOnly yes',
  'IdentityAgent none',
  'AddKeysToAgent no',
  'GlobalKnownHostsFile /dev/null',
  'UpdateHostKeys no',
  'CheckHostIP no',
  'VerifyHostKeyDNS no',
  'HashKnownHosts no',
  'ForwardAgent no',
  'ForwardX11 no',
  'PermitLocalCommand no',
  'ControlMaster no',
  'ControlPath none',
  'RequestTTY no',
  'EscapeChar none',
  'TCPKeepAlive yes',
  `ServerAliveInterval ${ALIVE.intervalSeconds}`,
  `ServerAliveCountMax ${ALIVE.count}`,
  `ConnectTimeout ${CONNECT_TIMEOUT_SECONDS}`,
  'ConnectionAttempts 1',
  'LogLevel INFO',
].map((line) => `  ${line}`);

function block(name: string, { machine, keyFile, knownHostsFile, acceptNew }: Hop): readonly string[] {
  const { address, port = 22, user = 'root' } = machine;
  // All of it goes into a file whose lines are instructions to the client.
  if (!/^[A-Za-z0-9][A-Za-z0-9.:_-]*$|^::[A-Fa-f0-9:.]*$/.test(address)) throw invalid('address', address);
  if (!/^[A-Za-z_][A-Za-z0-9_.-]*\$?$/.test(user)) throw invalid('user', user);
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw invalid('port', String(port));
  return [
    `Host ${name}`,
    `  HostName ${address}`,
    `  HostKeyAlias ${name}`,
    `  Port ${port}`,
    `  User ${user}`,
    `  IdentityFile ${quoted(keyFile)}`,
    `  UserKnownHostsFile ${quoted(knownHostsFile)}`,
    `  StrictHostKeyChecking ${acceptNew ? 'accept-new' : 'yes'}`,
  ];
}

function quoted(path: string): string {
  // The client expands % in paths, and knows no escape for a quote.
  return `"${path.replaceAll('%', '%%')}"`;
}

function invalid(what: string, value: string): MachineError {
  return new MachineError('InvalidMachine', `${JSON.stringify(value)} is not the ${what} of a machine`);
}
