import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, type ConnectConfig, type ServerHostKeyAlgorithm } from 'ssh2';
import { messageOf } from '../../../../local/assets/errors';
import type { ProviderRequest } from '../engine/provider';

/** How a machine is reached. */
interface Connection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password?: string;
  readonly privateKey?: string;
  readonly privateKeyPassword?: string;
  readonly agentSocketPath?: string;
  /** `<type> <base64>`, as in authorized_keys. Without it any host key is taken. */
  readonly hostKey?: string;
  /** Failed attempts that are borne; -1: any number. */
  readonly dialErrorLimit: number;
  /** In seconds; 0: no limit. */
  readonly perDialTimeout: number;
  readonly proxy?: Connection;
}

/** Inputs of a Command, local or remote. */
export interface CommandInputs {
  readonly create?: string;
  readonly update?: string;
  readonly delete?: string;
  readonly stdin?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly logging?: 'stdout' | 'stderr' | 'stdoutAndStderr' | 'none';
  readonly addPreviousOutputInEnv?: boolean;
  /** Only remote. */
  readonly connection?: Connection;
  /** Only local. */
  readonly dir?: string;
  /** Only local. */
  readonly interpreter?: readonly string[];
}

/** One command that is to run. */
export interface CommandRun {
  readonly request: ProviderRequest;
  readonly command: string;
  readonly inputs: CommandInputs;
  readonly env: Readonly<Record<string, string>>;
}

/** What a command printed, without the last newline. */
export interface CommandOutput {
  readonly stdout: string;
  readonly stderr: string;
}

/** Keeps what a command prints, and logs it line by line as `logging` says. */
export class Capture {
  private readonly all: Buffer[] = [];
  private readonly parts = { stdout: [] as Buffer[], stderr: [] as Buffer[] };

  constructor(private readonly run: CommandRun) {}

  take(stream: 'stdout' | 'stderr', chunk: Buffer): void {
    this.all.push(chunk);
    this.parts[stream].push(chunk);
  }

  /**
   * The command has ended.
   *
   * @param failure - why it counts as failed; undefined: it did not
   * @throws Error with the whole text of the command and all it printed, as the real provider's
   */
  end(failure: string | undefined): CommandOutput {
    this.log();
    const { command } = this.run;
    if (failure !== undefined) {
      throw new Error(`${failure}: running ${JSON.stringify(command)}:\n${Buffer.concat(this.all).toString('utf8')}`);
    }
    return { stdout: this.text('stdout').replace(/\n$/, ''), stderr: this.text('stderr').replace(/\n$/, '') };
  }

  private log(): void {
    const { logging = 'stdoutAndStderr' } = this.run.inputs;
    for (const stream of ['stdout', 'stderr'] as const) {
      if (logging !== 'stdoutAndStderr' && logging !== stream) continue;
      const lines = this.text(stream).split('\n');
      if (lines.at(-1) === '') lines.pop();
      for (const line of lines) this.run.request.log('info', line);
    }
  }

  private text(stream: 'stdout' | 'stderr'): string {
    return Buffer.concat(this.parts[stream]).toString('utf8');
  }
}

/** An open connection, and the one to its proxy. */
export interface SshConnection {
  readonly client: Client;
  end(): void;
  destroy(): void;
}

/** Connects, through the proxy if there is one, and tries again as often as `dialErrorLimit` bears. */
export async function dial(connection: Connection, request: ProviderRequest): Promise<SshConnection> {
  const { proxy } = connection;
  if (proxy === undefined) return link([await dialWithRetries('Dial', connection, request, () => connect(connection))]);
  const gate = await dialWithRetries('Dial proxy', proxy, request, () => connect(proxy)).catch((error: unknown) => {
    throw new Error(`proxy: ${messageOf(error)}`, { cause: error });
  });
  try {
    const client = await dialWithRetries('Dial from proxy', connection, request, async () =>
      connect(connection, await forwarded(gate, connection)),
    );
    return link([client, gate]);
  } catch (error) {
    gate.end();
    throw error;
  }
}

function link(clients: readonly Client[]): SshConnection {
  return {
    client: clients[0]!,
    end: () => clients.forEach((client) => client.end()),
    destroy: () => clients.forEach((client) => client.destroy()),
  };
}

/** Any failure, a refused key too, is tried again: first after 0.1 s, then later by half each time, up to 5 s (sdk/go/common/util/retry). */
async function dialWithRetries<T>(
  what: string,
  to: Connection,
  request: ProviderRequest,
  attempt: () => Promise<T>,
): Promise<T> {
  const limit = to.dialErrorLimit;
  for (let tries = 0, waitMs = 100; ; tries++, waitMs = Math.min(waitMs * 1.5, 5000)) {
    request.signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (limit > -1 && tries + 1 > limit) {
        throw new Error(`after ${tries} failed attempts: ${messageOf(error)}`, { cause: error });
      }
      request.log('info', `${what} ${tries + 1}/${limit === -1 ? 'inf' : limit} failed: retrying`);
    }
    await delay(waitMs, undefined, { signal: request.signal });
  }
}

function connect(connection: Connection, sock?: Duplex): Promise<Client> {
  const client = new Client();
  return new Promise((resolve, reject) => {
    client.once('ready', () => {
      client.off('error', reject);
      // A connection that is cut later shows in the command that runs over it.
      client.on('error', () => undefined);
      resolve(client);
    });
    client.on('error', reject);
    client.once('close', () => reject(new Error(`ssh: ${connection.host}:${connection.port} closed the connection`)));
    client.connect({ ...settings(connection), ...(sock === undefined ? {} : { sock }) });
  });
}

function settings(connection: Connection): ConnectConfig {
  const { host, port, user, hostKey, perDialTimeout } = connection;
  const agent = connection.agentSocketPath ?? process.env.SSH_AUTH_SOCK;
  const [type, key] = hostKey?.trim().split(/\s+/) ?? [];
  if (hostKey !== undefined && key === undefined) throw new Error('failed to parse host key: ssh: no key found');
  return {
    host,
    port,
    username: user,
    readyTimeout: perDialTimeout * 1000,
    ...(connection.password === undefined ? {} : { password: connection.password, tryKeyboard: true }),
    ...(connection.privateKey === undefined ? {} : { privateKey: connection.privateKey }),
    ...(connection.privateKeyPassword === undefined ? {} : { passphrase: connection.privateKeyPassword }),
    ...(agent === undefined || agent === '' ? {} : { agent }),
    ...(key === undefined
      ? {}
      : {
          algorithms: { serverHostKey: [type as ServerHostKeyAlgorithm] },
          hostVerifier: (offered: Buffer) => offered.toString('base64') === key,
        }),
  };
}

function forwarded(gate: Client, to: Connection): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    gate.forwardOut('127.0.0.1', 0, to.host, to.port, (error, channel) => {
      if (error === undefined) resolve(channel);
      else reject(error);
    });
  });
}
