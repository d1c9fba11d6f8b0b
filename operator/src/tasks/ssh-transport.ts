import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { commandLine } from '../../../provision/task/script-io';
import type { Machine } from '../../../provision/task/task';
import { CLIENT_FAILED, classify } from './classify';
import type { HostKeyStore } from './host-keys';
import { usablePrivateKey } from './private-key';
import { withPrivateFolder, type PrivateFolder } from './private-folder';
import { runProgram, type ProgramEnd } from './run-program';
import { BASTION, TARGET, endpointOf, knownHostLine, sshConfig, type Hop } from './ssh-config';
import { MachineError, type Transport, type TransportRequest, type TransportResult } from './transport';

/** What a transport by SSH needs. */
export interface SshTransportOptions {
  /** Looks up the private key of a machine or a bastion. */
  readonly privateKey: (machine: Omit<Machine, 'bastion'>) => Promise<string>;
  /** Trusts the first host key that a machine without `hostKey` shows, and holds it to that. @default such a machine is refused */
  readonly trustOnFirstUse?: HostKeyStore;
  /** Told about what is less safe than it could be. */
  readonly onWarning?: (message: string) => void;
  /** Where keys lie, in a folder of their own, while a script runs; best in memory. @default the system's temporary folder */
  readonly folder?: string;
  /** The ssh client of OpenSSH, 8.0 or newer. @default 'ssh' */
  readonly program?: string;
}

type Host = Omit<Machine, 'bastion'>;

/**
 * Runs scripts on other machines, as root, by the ssh client of OpenSSH.
 *
 * Guarantees: the host key is known before anything is sent; private keys lie in files of mode 0600 in a folder of mode 0700 that is removed
 * when the run ends, and never appear in arguments or the environment; no configuration, agent or prompt of the user is touched.
 *
 * Caveats: a process that is killed leaves that folder behind, so give it one in memory that goes with the process' container.
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
    const command = commandLine(script, { user: machine.user ?? 'root', asUser: machine.asUser ?? false });
    const left = timeoutSeconds - (performance.now() - started) / 1000;
    const end = await this.#connect({ target, bastion, command, stdin, timeoutSeconds: left, signal });
    return { exitCode: end.exitCode, stdout: end.stdout, stderr: end.stderr };
  }

  /** The machine with a host key; one that is not known yet is met, and recorded before anything else happens. */
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
        // SHELL is what starts the client that goes to the bastion; its messages are read, so they must be English.
        env: { PATH: process.env['PATH'] ?? '', SHELL: '/bin/sh', LC_ALL: 'C' },
        stdin,
        timeoutSeconds,
        signal,
        where: `on ${endpointOf(target)}`,
      });
      const messages = await readFile(log, 'utf8');
      const { exitCode } = end;
      if (exitCode === null || (exitCode === CLIENT_FAILED && !answered(end.stdout))) {
        throw classify({ log: messages, stderr: end.stderr, machine: { ...target, ...(bastion && { bastion }) } });
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

/** A script may itself end with the client's code; it has answered then. */
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
