import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { parse, stringify } from 'yaml';
import { CertificateAuthority } from '../../local/certificates';
import { Exchange, proxiedRequest, type ProxiedRequest, type Upstream } from './exchange';

/**
 * What becomes of a request: all of it, so a fault that lets it pass says so. One that throws ends the client's connection, as a proxy
 * does whose server is gone.
 */
export type Fault = (exchange: Exchange) => Promise<void>;

/** A fault for some requests; the others pass. */
export function when(affected: (request: ProxiedRequest) => boolean, fault: Fault): Fault {
  return (exchange) => (affected(exchange.request) ? fault(exchange) : exchange.pass());
}

/** A request that came, without its body. */
export type SeenRequest = ProxiedRequest & {
  /** When, in milliseconds since 1970. */
  readonly at: number;
  /** Whether it asks for metadata only, as audits do, and whoever looks whether an object still lives. */
  readonly metadataOnly: boolean;
  /** Whether a fault has changed anything about it or its answer until now; a watch may stand for long before one does. */
  readonly hurt: boolean;
  /** When it was over, in milliseconds since 1970. @default it is under way */
  readonly ended?: number;
  /** HTTP's status of the answer that the client was sent, whole or not. @default none was sent yet */
  readonly status?: number;
  /** Whether the server could not be reached, or went away before it began to answer, while the client still waited. */
  readonly unanswered: boolean;
};

type Writable<T> = { -readonly [field in keyof T]: T[field] };

interface KubeconfigFile {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
}

/**
 * Stands between an operator and the API server, and does what the network and a server in trouble do.
 *
 * Guarantees: without a fault it changes no byte of a body; what it was told to do applies to the next request, while those under way go
 * on as they began.
 */
export class FaultProxy {
  /** What is done with requests from now on. @default they pass */
  fault: Fault = noFault;
  /** Every request that came, oldest first. */
  readonly requests: SeenRequest[] = [];
  /** The TCP connections below TLS, by the client's port: a connection can be reset only there. */
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
    // A connection that is reset on purpose says so to both of its ends; its `close` follows.
    server.on('secureConnection', (socket: Socket) => socket.on('error', () => socket.destroy()));
  }

  /** Starts one in front of the server that a kubeconfig names. */
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

  /** Writes a copy of a kubeconfig that leads through here; @returns its path, beside the original's */
  kubeconfig(of: string): string {
    const file = readKubeconfig(of);
    const cluster = clusterOf(file);
    cluster.server = this.url;
    cluster['certificate-authority-data'] = Buffer.from(this.authority.certificate).toString('base64');
    const path = `${of}.faults-${new URL(this.url).port}`;
    writeFileSync(path, stringify(file), { mode: 0o600 });
    return path;
  }

  /** Writes that came, Leases and events left out, oldest first. */
  writes(): readonly ProxiedRequest[] {
    return this.requests.filter(({ writes, beside }) => writes && !beside);
  }

  /** Requests that came since a moment (milliseconds since 1970) and were hurt, oldest first. */
  faultedRequests(since = 0): readonly SeenRequest[] {
    return this.requests.filter(({ hurt, at }) => hurt && at >= since);
  }

  /** Cuts every connection, watches too. */
  dropConnections(): void {
    for (const socket of this.connections.values()) socket.resetAndDestroy();
  }

  /** Cuts every connection and stops. */
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
        ...{ hurt: false, unanswered: false },
      };
      seen = came;
      this.requests.push(came);
      const hurt = (): void => void (came.hurt = true);
      const unanswered = (): void => void (came.unanswered = true);
      const answered = (status: number): void => void (came.status = status);
      const hooks = { reset, hurt, unanswered, answered };
      await this.fault(new Exchange(request, incoming, outgoing, this.upstream, hooks));
    } catch {
      // The client has gone, or the server cannot be reached: what is left of the connection is cut, as the network would.
      incoming.socket.destroy();
    } finally {
      if (seen !== undefined) seen.ended = Date.now();
    }
  }
}

/** No fault. */
export const noFault: Fault = (exchange) => exchange.pass();

async function wholeBody(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function readKubeconfig(path: string): KubeconfigFile {
  return parse(readFileSync(path, 'utf8')) as KubeconfigFile;
}

function clusterOf(file: KubeconfigFile): KubeconfigFile['clusters'][number]['cluster'] {
  const [first] = file.clusters;
  if (first === undefined) throw new Error('the kubeconfig names no cluster');
  return first.cluster;
}
