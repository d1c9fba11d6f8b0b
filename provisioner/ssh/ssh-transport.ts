import { createPrivateKey } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sshCommand } from '../../provision/task/script-io';
import type { Machine } from '../../provision/task/task';
import { runProgram, type ProgramEnd } from '../tasks/local-transport';
import { MachineError, type Transport, type TransportRequest, type TransportResult } from '../tasks/transport';
import {
  BASTION,
  CLIENT_FAILED,
  TARGET,
  classifySshFailure,
  endpointOf,
  knownHostLine,
  sshConfig,
  type Hop,
} from './openssh';

/** Options of {@link SshTransport}. */
export interface SshTransportOptions {
  /** Looks up the private key of a machine or a bastion. */
  readonly privateKey: (machine: Omit<Machine, 'bastion'>) => Promise<string>;
  /**
   * Trusts and pins the first host key of a machine without `hostKey`.
   * @default such a machine is rejected
   */
  readonly trustOnFirstUse?: HostKeyStore;
  /** Receives warnings about what is less safe than it could be. */
  readonly onWarning?: (message: string) => void;
  /**
   * Parent of the directory with key files while a script runs; best in memory.
   * @default the system's temporary directory
   */
  readonly folder?: string;
  /** The ssh client of OpenSSH, 8.0 or newer. @default 'ssh' */
  readonly program?: string;
}

/**
 * Stores the host keys that were trusted on first use. Whichever machine answers first at the address is
 * trusted for good, so give host keys where you can.
 */
export interface HostKeyStore {
  /** @returns the recorded key of the endpoint */
  get(endpoint: Endpoint): Promise<string | undefined>;
  /** Resolves once the key is durable: nothing is sent to the machine before. */
  put(endpoint: Endpoint, hostKey: string): Promise<void>;
}

/** Where an SSH server listens. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

type Host = Omit<Machine, 'bastion'>;

/**
 * Runs scripts on other machines, as root unless the machine has `asUser`, with the ssh client of OpenSSH.
 *
 * Guarantees: the host key is known before anything is sent; private keys are in files of mode 0600 in a
 * directory of mode 0700 that is deleted when the run ends, and never appear in arguments or the environment;
 * the user's configuration and agent are not used, and nothing prompts.
 *
 * Caveats: a process that is killed leaves that directory behind, so give it one in memory that ends with the
 * container.
 */
export class SshTransport implements Transport {
  constructor(private readonly options: SshTransportOptions) {}

  async run({ machine, script, stdin, timeoutSeconds, signal }: TransportRequest): Promise<TransportResult> {
    if (machine === undefined) {
      throw new MachineError('InvalidMachine', 'a transport by SSH needs a machine; this one has none');
    }
    const started = performance.now();
    const bastion = machine.bastion && (await this.#known(machine.bastion, undefined, timeoutSeconds, signal));
    const target = await this.#known(machine, bastion, timeoutSeconds, signal);
    const command = sshCommand(script, { user: machine.user ?? 'root', asUser: machine.asUser ?? false });
    const left = timeoutSeconds - (performance.now() - started) / 1000;
    const end = await this.#connect({ target, bastion, command, stdin, timeoutSeconds: left, signal });
    return { exitCode: end.exitCode, stdout: end.stdout, stderr: end.stderr };
  }

  /** The machine with its host key. An unknown key is fetched, and recorded before anything else is sent. */
  async #known(host: Host, bastion: Host | undefined, timeoutSeconds: number, signal?: AbortSignal): Promise<Host> {
    if (host.hostKey !== undefined) return host;
    const { trustOnFirstUse, onWarning } = this.options;
    const endpoint = { address: host.address, port: host.port ?? 22 };
    if (trustOnFirstUse === undefined) throw unknownHostKey(host);
    const recorded = await trustOnFirstUse.get(endpoint);
    if (recorded !== undefined) return { ...host, hostKey: recorded };
    const met = await this.#connect({ target: host, bastion, command: 'exit 0', stdin: '', timeoutSeconds, signal });
    const [, hostKey] = /^\S+ (\S+ \S+)/m.exec(met.knownHosts) ?? [];
    if (hostKey === undefined) throw unknownHostKey(host);
    await trustOnFirstUse.put(endpoint, hostKey);
    onWarning?.(
      `${host.address}: its host key was not given, so the first one it showed is trusted from now on: ${hostKey}. ` +
        'Compare it with /etc/ssh/ssh_host_*_key.pub on the machine',
    );
    return { ...host, hostKey };
  }

  async #connect(connection: Connection): Promise<ProgramEnd & { exitCode: number; knownHosts: string }> {
    const { target, bastion, command, stdin, timeoutSeconds, signal } = connection;
    return withPrivateFolder(this.options.folder ?? tmpdir(), async (folder) => {
      const hop = await this.#hop(folder, TARGET, target);
      const via = bastion && (await this.#hop(folder, BASTION, bastion));
      const config = await folder.write('config', sshConfig(hop, via));
      const log = await folder.write('log', '');
      const end = await runProgram({
        program: this.options.program ?? 'ssh',
        args: ['-F', config, '-E', log, '-T', '--', TARGET, command],
        // SHELL starts the client that connects to the bastion; its messages are parsed, so they must be
        // English.
        env: { PATH: process.env['PATH'] ?? '', SHELL: '/bin/sh', LC_ALL: 'C' },
        stdin,
        timeoutSeconds,
        signal,
        where: `on ${endpointOf(target)}`,
      });
      const messages = await readFile(log, 'utf8');
      const { exitCode } = end;
      if (exitCode === null || (exitCode === CLIENT_FAILED && !answered(end.stdout))) {
        throw classifySshFailure({
          log: messages,
          stderr: end.stderr,
          machine: { ...target, ...(bastion && { bastion }) },
        });
      }
      return { ...end, exitCode, knownHosts: await readFile(hop.knownHostsFile, 'utf8') };
    });
  }

  async #hop(folder: PrivateFolder, name: string, machine: Host): Promise<Hop> {
    const key = usablePrivateKey(await this.options.privateKey(machine), `the private key for ${endpointOf(machine)}`);
    const known = machine.hostKey === undefined ? '' : knownHostLine(name, machine.hostKey);
    return {
      machine,
      keyFile: await folder.write(`${name}.key`, key),
      knownHostsFile: await folder.write(`${name}.known`, known),
      acceptNew: machine.hostKey === undefined,
    };
  }
}

interface Connection {
  readonly target: Host;
  readonly bastion: Host | undefined;
  readonly command: string;
  readonly stdin: string;
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal | undefined;
}

/** A script may itself end with the exit code of a failed client; then there is a result. */
function answered(stdout: string): boolean {
  return stdout.trimEnd().endsWith('}');
}

function unknownHostKey(host: Host): MachineError {
  return new MachineError(
    'HostKeyUnknown',
    `no host key is known for ${endpointOf(host)}, so nothing was sent. Give it (the first two words of ` +
      '/etc/ssh/ssh_host_ed25519_key.pub on the machine), or allow trust on first use',
  );
}

/**
 * A private key as the ssh client reads it: every line ends with LF.
 *
 * @param whose - for the message: `the key of 10.0.0.1`
 * @throws MachineError `InvalidKey` when it is no key or has a passphrase; the message contains nothing of it
 * @testonly
 */
export function usablePrivateKey(text: string, whose: string): string {
  const key = `${text.replaceAll('\r\n', '\n').trim()}\n`;
  const [, body] = OPENSSH.exec(key) ?? [];
  const problem = body === undefined ? pemProblem(key) : openSshProblem(Buffer.from(body, 'base64'));
  if (problem === undefined) return key;
  throw new MachineError('InvalidKey', `${whose} cannot be used: ${problem}`);
}

const OPENSSH = /^-----BEGIN OPENSSH PRIVATE KEY-----\n([A-Za-z0-9+/=\n]+)-----END OPENSSH PRIVATE KEY-----\n?$/;

const passphrase =
  'it asks for a passphrase, and nobody is there to give it. Make a key without one for this purpose alone (ssh-keygen -t ed25519 -N "")';
const malformed =
  'it is not a private key. Put the whole file in, with its BEGIN and END lines, not the .pub file and not base64 of it';

/** The magic; the cipher's name with its length follows. Source: PROTOCOL.key of OpenSSH. */
const MAGIC = Buffer.from('openssh-key-v1\0');

function openSshProblem(body: Buffer): string | undefined {
  if (body.length < MAGIC.length + 8 || !body.subarray(0, MAGIC.length).equals(MAGIC)) return malformed;
  const length = body.readUInt32BE(MAGIC.length);
  const start = MAGIC.length + 4;
  const cipher = body.subarray(start, start + length).toString('latin1');
  return cipher === 'none' ? undefined : passphrase;
}

function pemProblem(key: string): string | undefined {
  if (!key.startsWith('-----BEGIN ')) return malformed;
  // PKCS#8 names encryption in its first line, older formats in the second. Sources: RFC 5958, RFC 1421.
  if (/^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED$/m.test(key)) return passphrase;
  try {
    createPrivateKey({ key, format: 'pem' });
    return undefined;
  } catch {
    return malformed; // the parser's message may quote the key
  }
}

/**
 * Creates a directory that only this user may read, calls `use`, and deletes the directory.
 *
 * @param parent - best a file system in memory, so that nothing reaches a disk
 */
async function withPrivateFolder<T>(parent: string, use: (folder: PrivateFolder) => Promise<T>): Promise<T> {
  const path = await mkdtemp(join(parent, 'kindred-ssh-')); // mode 0700
  try {
    return await use(new PrivateFolder(path));
  } finally {
    await rm(path, { recursive: true, force: true });
  }
}

/** A directory for files that only this user may read. */
class PrivateFolder {
  constructor(private readonly path: string) {}

  file(name: string): string {
    return join(this.path, name);
  }

  /** @returns the path of the new file */
  async write(name: string, content: string): Promise<string> {
    const file = this.file(name);
    await writeFile(file, content, { mode: 0o600, flag: 'wx' });
    return file;
  }
}
