import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { dump, load } from 'js-yaml';
import { CertificateAuthority } from '../../local/certificates';
import { Exchange, proxiedRequest, type ProxiedRequest, type Upstream } from './exchange';

/**
 * Handles a request completely, so a fault that lets it pass has to call `pass`. If it throws, the proxy cuts
 * the client's connection, as a proxy does whose server is unreachable.
 */
export type Fault = (exchange: Exchange) => Promise<void>;

/** A request that the proxy received, without its body. */
export type SeenRequest = ProxiedRequest & {
  /** When it was received, in milliseconds since 1970. */
  readonly at: number;
  /**
   * Whether it requests metadata only, as consistency checks do, and reads that check whether an object still
   * exists.
   */
  readonly metadataOnly: boolean;
  /**
   * Whether a fault has changed anything about it or its response so far; a watch may run for long before one
   * does.
   */
  readonly hadFault: boolean;
  /** When it ended, in milliseconds since 1970. @default it is running */
  readonly ended?: number;
  /** The HTTP status that the client was sent, with a complete body or not. @default none was sent yet */
  readonly status?: number;
  /**
   * Whether the server was unreachable, or closed the connection before it responded, while the client still
   * waited.
   */
  readonly unanswered: boolean;
};

/**
 * A proxy between an operator and the API server that imitates faults of the network and of the server.
 *
 * Guarantees: without a fault it changes no byte of a body; a new fault applies from the next request on,
 * while running ones continue as they began.
 */
export class FaultProxy {
  /** The fault for requests from now on. @default they pass */
  fault: Fault = noFault;
  /** Every request so far, oldest first. */
  readonly requests: SeenRequest[] = [];
  /** The TCP connections below TLS, by the client's port: only these can be reset. */
  private readonly connections = new Map<number | undefined, Socket>();

  private constructor(
    private readonly server: Server,
    private readonly upstream: Upstream,
    private readonly authority: CertificateAuthority,
  ) {
    server.on('request', (incoming, outgoing) => void this.handle(incoming, outgoing));
    server.on('connection', (socket: Socket) => {
      const { remotePort } = socket;
      this.connections.set(remotePort, socket);
      socket.once('close', () => this.connections.delete(remotePort));
    });
    // A deliberate reset raises an error on both ends; `close` follows.
    server.on('secureConnection', (socket: Socket) => socket.on('error', () => socket.destroy()));
  }

  /** Starts a proxy in front of the server of a kubeconfig. */
  static async start(kubeconfig: string): Promise<FaultProxy> {
    const { server: origin, 'certificate-authority-data': ca } = clusterOf(readKubeconfig(kubeconfig));
    const authority = new CertificateAuthority('fault-proxy-ca');
    const { certificate: cert, key } = authority.server('fault-proxy', ['127.0.0.1', 'localhost']);
    const server = createServer({ cert, key });
    server.requestTimeout = 0;
    server.keepAliveTimeout = 120_000;
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
    const agent = new Agent({ ca: Buffer.from(ca, 'base64'), keepAlive: true });
    return new FaultProxy(server, { origin, agent }, authority);
  }

  /** `https://127.0.0.1:<port>`. */
  get url(): string {
    return `https://127.0.0.1:${String((this.server.address() as AddressInfo).port)}`;
  }

  /**
   * Writes a copy of a kubeconfig whose server is this proxy.
   * @returns its path, beside the original's
   */
  kubeconfig(of: string): string {
    const file = readKubeconfig(of);
    const cluster = clusterOf(file);
    cluster.server = this.url;
    cluster['certificate-authority-data'] = Buffer.from(this.authority.certificate).toString('base64');
    const path = `${of}.faults-${new URL(this.url).port}`;
    writeFileSync(path, dump(file, { lineWidth: -1 }), { mode: 0o600 });
    return path;
  }

  /** The writes so far, without those of Leases and events, oldest first. */
  writes(): readonly ProxiedRequest[] {
    return this.requests.filter(({ writes, isBackground }) => writes && !isBackground);
  }

  /** The requests since a time (milliseconds since 1970) that a fault changed, oldest first. */
  faultedRequests(since = 0): readonly SeenRequest[] {
    return this.requests.filter(({ hadFault, at }) => hadFault && at >= since);
  }

  /** Resets every connection, watches too. */
  dropConnections(): void {
    for (const socket of this.connections.values()) socket.resetAndDestroy();
  }

  /** Resets every connection and stops. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.dropConnections();
    this.upstream.agent.destroy();
    await closed;
  }

  private async handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    let seen: Writable<SeenRequest> | undefined;
    const connection = this.connections.get(incoming.socket.remotePort);
    const reset = (): void => void connection?.resetAndDestroy();
    try {
      const body = await wholeBody(incoming);
      const request = proxiedRequest(incoming.method ?? 'GET', incoming.url ?? '/', body);
      const metadataOnly = incoming.headers.accept?.includes('as=PartialObjectMetadata') === true;
      const came: Writable<SeenRequest> = {
        ...{ ...request, metadataOnly, body: Buffer.alloc(0), at: Date.now() },
        ...{ hadFault: false, unanswered: false },
      };
      seen = came;
      this.requests.push(came);
      const markFault = (): void => void (came.hadFault = true);
      const unanswered = (): void => void (came.unanswered = true);
      const answered = (status: number): void => void (came.status = status);
      const hooks = { reset, markFault, unanswered, answered };
      await this.fault(new Exchange(request, incoming, outgoing, this.upstream, hooks));
    } catch {
      // The client has disconnected, or the server is unreachable: cut the rest of the connection, as the
      // network would.
      incoming.socket.destroy();
    } finally {
      if (seen !== undefined) seen.ended = Date.now();
    }
  }
}

/** No fault. */
export const noFault: Fault = (exchange) => exchange.pass();

/** Applies a fault to some requests; the others pass. */
export function when(affected: (request: ProxiedRequest) => boolean, fault: Fault): Fault {
  return (exchange) => (affected(exchange.request) ? fault(exchange) : exchange.pass());
}

type Writable<T> = { -readonly [field in keyof T]: T[field] };

interface KubeconfigFile {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
}

async function wholeBody(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function readKubeconfig(path: string): KubeconfigFile {
  return load(readFileSync(path, 'utf8')) as KubeconfigFile;
}

function clusterOf(file: KubeconfigFile): KubeconfigFile['clusters'][number]['cluster'] {
  const [first] = file.clusters;
  if (first === undefined) throw new Error('the kubeconfig names no cluster');
  return first.cluster;
}
