import { spawn } from 'node:child_process';
import { createHash, timingSafeEqual } from 'node:crypto';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, utils, type AuthContext, type Connection, type ServerChannel } from 'ssh2';
import { keyRefOf, newSshKeys, type SshHost } from './ssh-host';

/** An SSH server in this process. */
export interface InProcessHost extends SshHost {
  /** The folder that commands have as `HOME`. */
  readonly home: string;
  /** Every command that was asked for, as it came in. */
  readonly commands: readonly string[];
  /** Ends it, and what it runs. */
  end(): Promise<void>;
}

/**
 * Starts an SSH server on 127.0.0.1, for machines that cannot have hosts of their own.
 *
 * What it serves: the protocol, keys, stdin, answers, exit codes, cut connections. What it does not: commands run as this process' user, on
 * this machine's own file system, with a `HOME` that is theirs. A script that changes a machine must not be sent to it.
 */
export async function startInProcessHost(name = 'in-process'): Promise<InProcessHost> {
  const host = new Ssh2Host(name);
  await host.startSshd();
  return host;
}

/**
 * A loopback address of its own where there are many: its port must still be free when the server comes back, and on 127.0.0.1 any other
 * process may be given that port meanwhile.
 */
function ownAddress(): string {
  if (process.platform !== 'linux') return '127.0.0.1';
  return `127.${[...randomBytes(3)].map((byte) => 1 + (byte % 254)).join('.')}`;
}

class Ssh2Host implements InProcessHost {
  readonly address = ownAddress();
  readonly commands: string[] = [];
  readonly home = mkdtempSync(join(tmpdir(), 'kindred-home-'));
  port = 0;
  readonly #keys = newSshKeys();
  #hostKeys = newSshKeys();
  #accepting = true;
  #server: Server | undefined;
  readonly #connections = new Set<Connection>();
  readonly #running = new Set<() => void>();

  constructor(readonly name: string) {}

  get hostKey(): string {
    return this.#hostKeys.publicKey;
  }

  get privateKey(): string {
    return this.#keys.privateKey;
  }

  machine(user = 'root'): ReturnType<SshHost['machine']> {
    const { address, port, hostKey } = this;
    return { address, port, user, hostKey, sshKey: keyRefOf(this) };
  }

  async startSshd(): Promise<void> {
    const server = new Server({ hostKeys: [this.#hostKeys.privateKey] }, (connection) => this.#serve(connection));
    await new Promise<void>((resolve) => server.listen(this.port, this.address, resolve));
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  stopSshd(): Promise<void> {
    // Resolved at once: those connections that stand go on, and `close` would wait for them.
    this.#server?.close();
    this.#server = undefined;
    return Promise.resolve();
  }

  dropConnections(): Promise<void> {
    for (const connection of this.#connections)
      (connection as unknown as { _sock: { destroy(): void } })._sock.destroy();
    return Promise.resolve();
  }

  async changeHostKey(): Promise<void> {
    await this.stopSshd();
    this.#hostKeys = newSshKeys();
    await this.startSshd();
  }

  refuseKey(): Promise<void> {
    this.#accepting = false;
    return Promise.resolve();
  }

  acceptKey(): Promise<void> {
    this.#accepting = true;
    return Promise.resolve();
  }

  async end(): Promise<void> {
    await this.stopSshd();
    await this.dropConnections();
    for (const kill of this.#running) kill();
    rmSync(this.home, { recursive: true, force: true });
  }

  #serve(connection: Connection): void {
    this.#connections.add(connection);
    connection.once('close', () => this.#connections.delete(connection));
    connection.on('error', () => undefined); // cut on purpose, or by the client
    connection.on('authentication', (context) =>
      this.#admits(context) ? context.accept() : context.reject(['publickey']),
    );
    connection.on('session', (acceptSession) => {
      acceptSession().on('exec', (acceptExec, _reject, { command }) => {
        this.commands.push(command);
        this.#run(command, acceptExec());
      });
    });
  }

  #admits(context: AuthContext): boolean {
    if (context.method !== 'publickey' || !this.#accepting) return false;
    const key = utils.parseKey(this.#keys.publicKey);
    if (key instanceof Error) throw key;
    if (context.key.algo !== key.type || !same(context.key.data, key.getPublicSSH())) return false;
    if (context.signature === undefined) return true; // the client only asks whether it may try this key
    return context.blob !== undefined && key.verify(context.blob, context.signature, context.hashAlgo);
  }

  #run(command: string, channel: ServerChannel): void {
    const env = { PATH: process.env['PATH'] ?? '', HOME: this.home };
    const child = spawn('sh', ['-c', command], { cwd: this.home, env, stdio: 'pipe', detached: true });
    const kill = (): void => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
    };
    this.#running.add(kill);
    channel.pipe(child.stdin);
    child.stdin.on('error', () => undefined); // it did not read all of it
    child.stdout.pipe(channel, { end: false });
    child.stderr.pipe(channel.stderr, { end: false });
    child.once('close', (code, signal) => {
      this.#running.delete(kill);
      if (signal === null) channel.exit(code ?? 0);
      else channel.exit(signal.replace('SIG', ''));
      channel.end();
    });
  }
}

/** Compares without telling where they differ. */
function same(a: Buffer, b: Buffer): boolean {
  const hash = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();
  return timingSafeEqual(hash(a), hash(b));
}
