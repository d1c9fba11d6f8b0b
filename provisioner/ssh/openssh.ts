/** OpenSSH's client: its configuration, and the meaning of its failures. */

import { printable } from '../../provision/task/script-io';
import type { Machine } from '../../provision/task/task';
import { MachineError, type MachineFailure } from '../tasks/transport';

/** A machine to connect to or to jump through, with the files that OpenSSH's client reads for it. */
export interface Hop {
  readonly machine: Omit<Machine, 'bastion'>;
  /** Path of the private key. */
  readonly keyFile: string;
  /** Path of the known_hosts file. */
  readonly knownHostsFile: string;
  /** Accept a host key that is not known, and record it. */
  readonly acceptNew: boolean;
}

/** Names of the machines in the configuration, the host keys and the messages of the client. */
export const TARGET = 'kindred-machine';
export const BASTION = 'kindred-bastion';

/**
 * The configuration of one run of the ssh client. It replaces those of the user and the system: no prompt, no
 * agent, no forwarding, no shared connection.
 *
 * @throws MachineError `InvalidMachine` for an invalid address, user or port
 */
export function sshConfig(target: Hop, bastion?: Hop): string {
  const hops = bastion === undefined ? [] : [...block(BASTION, bastion), ''];
  const jump = bastion === undefined ? [] : [`  ProxyJump ${BASTION}`];
  return [...hops, ...block(TARGET, target), ...jump, '', 'Host *', ...common, ''].join('\n');
}

/** Keep-alive: after `count` unanswered probes the connection counts as lost. */
const ALIVE = { intervalSeconds: 10, count: 3 } as const;
const CONNECT_TIMEOUT_SECONDS = 15;

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
  // Validated, because each line of the file is an instruction to the client.
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
  // The client expands % in paths, and has no escape for a quote.
  return `"${path.replaceAll('%', '%%')}"`;
}

function invalid(what: string, value: string): MachineError {
  return new MachineError('InvalidMachine', `${JSON.stringify(value)} is not the ${what} of a machine`);
}

/** A line of a known_hosts file. @throws MachineError `InvalidMachine` for a malformed key */
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

/** The exit code of the ssh client for its own failures. Source: ssh(1), EXIT STATUS. */
export const CLIENT_FAILED = 255;

/** What the client wrote before it failed. */
interface ClientFailure {
  /** Its own messages. */
  readonly log: string;
  /** Messages of the client that connects to the bastion, mixed with the stderr of the script. */
  readonly stderr: string;
  readonly machine: Machine;
}

/** The error for a failure of the ssh client. */
export function classifySshFailure({ log, stderr, machine }: ClientFailure): MachineError {
  const { bastion } = machine;
  const ofBastion = bastion !== undefined && blames(`${stderr}\n${log}`, bastion.address);
  const subject = ofBastion ? `the bastion ${endpointOf(bastion)}` : endpointOf(machine);
  // Output of the script counts only where the client itself says nothing: a script may write anything.
  const rule = (ofBastion ? findRule(stderr) : undefined) ?? findRule(log) ?? findRule(bastion ? stderr : '');
  const said = lastLine(ofBastion ? stderr : log);
  const quote = said === '' ? '' : ` (ssh: ${said})`;
  if (rule !== undefined) return new MachineError(rule.reason, `${subject} ${rule.advice}${quote}`);
  return new MachineError(
    'ConnectionLost',
    `${subject}: the connection or the script was ended before the script answered${quote}; running it again is safe`,
  );
}

/** Whether messages are about the bastion, by the client's name for it or by its address. */
function blames(messages: string, address: string): boolean {
  const lines = messages.split('\n');
  return lines.some(
    (line) =>
      findRule(line) !== undefined &&
      (line.includes(BASTION) || line.includes(`@${address}:`) || line.includes(`host ${address} port`)),
  );
}

function findRule(messages: string): Rule | undefined {
  return rules.find(({ pattern }) => pattern.test(messages));
}

interface Rule {
  readonly pattern: RegExp;
  readonly reason: MachineFailure;
  /** What happened and what to do; follows the machine's name. */
  readonly advice: string;
}

/** The client's messages (in English, `LC_ALL=C`) and their meaning. The first match counts. */
const rules: readonly Rule[] = [
  {
    pattern: /host key for \S+ has changed|No \S+ host key is known for|REMOTE HOST IDENTIFICATION HAS CHANGED/i,
    reason: 'HostKeyMismatch',
    advice:
      'shows another host key than the one it is known by, so nothing was sent. If it was installed anew, put its new key in ' +
      '(/etc/ssh/ssh_host_ed25519_key.pub on the machine); if not, somebody else answers at its address',
  },
  {
    pattern: /Host key verification failed/,
    reason: 'HostKeyMismatch',
    advice: 'could not prove that it is the machine its host key belongs to, so nothing was sent',
  },
  {
    pattern: /Permission denied \(|Too many authentication failures|no mutual signature algorithm/,
    reason: 'AuthenticationFailed',
    advice:
      "does not take the key for this user. Put the key's public part into the user's ~/.ssh/authorized_keys; check that the " +
      'user exists and that sshd lets it in (PermitRootLogin, AllowUsers)',
  },
  {
    pattern: /error in libcrypto|invalid format|Load key /,
    reason: 'InvalidKey',
    advice: 'cannot be logged in to with this private key: the ssh client cannot read it',
  },
  {
    pattern: /Could not resolve hostname/,
    reason: 'Unreachable',
    advice: 'has a name that cannot be resolved from here. Check the address, or give an IP address',
  },
  {
    pattern: /open failed: administratively prohibited/,
    reason: 'Unreachable',
    advice: 'cannot be reached through the bastion, whose sshd forwards nothing. Set AllowTcpForwarding there',
  },
  {
    pattern:
      /connect to host|open failed: connect failed|Unable to negotiate|Bad remote protocol|kex_exchange_identification/,
    reason: 'Unreachable',
    advice: 'cannot be reached by SSH. Check its address and port, that it runs, its sshd, and firewalls on the way',
  },
  {
    pattern:
      /not responding|closed by remote host|Connection reset|Broken pipe|Connection closed|Connection to \S+ timed out/,
    reason: 'ConnectionLost',
    advice: 'was lost while the script ran. The script may still run there; running it again is safe and waits for it',
  },
];

/** Longest quotation of a message of the client, in characters. */
const MAX_QUOTE = 200;

function lastLine(messages: string): string {
  return printable(messages.trim().split(/\r?\n/).at(-1) ?? '', MAX_QUOTE);
}
