import type { IncomingMessage, ServerResponse } from 'node:http';
import { request as httpsRequest, type Agent } from 'node:https';
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** The server that requests are forwarded to. */
export interface Upstream {
  readonly origin: string;
  readonly agent: Agent;
}

/** A response with its complete body. */
export interface BufferedResponse {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** The proxy's own actions and records for an exchange. */
interface ExchangeHooks {
  /** Cuts the client's connection by a TCP reset. */
  readonly reset: () => void;
  /** A fault changed the exchange; called at most once. */
  readonly markFault: () => void;
  /**
   * The server was unreachable, or closed the connection before it responded, while the client still waited.
   */
  readonly unanswered: () => void;
  /** The client is being sent a response with this HTTP status. */
  readonly answered: (status: number) => void;
}

/** Changes to a forwarded request. */
interface ForwardOptions {
  /** Path and query. @default unchanged */
  readonly target?: string;
  /**
   * The server gets the request even when the client has disconnected, like a request that was already on the
   * network.
   * @default false
   */
  readonly outlivesClient?: boolean;
}

/**
 * One request and the steps to handle it. A fault combines these steps; `pass` is what a proxy without a
 * fault does.
 *
 * Guarantee: whatever happens to the upstream, the client gets either a response or the end of its
 * connection, never silence that no fault wants. Everything but a plain pass counts as faulted: steps that
 * are always a fault call `markFaulted` themselves; for the others, the fault calls it when it takes effect.
 */
export class Exchange {
  /** Aborts when the client has disconnected, or was disconnected. */
  readonly clientGone: AbortSignal;
  private readonly going = new AbortController();
  private isFaulted = false;

  constructor(
    readonly request: ProxiedRequest,
    private readonly incoming: IncomingMessage,
    private readonly outgoing: ServerResponse,
    private readonly upstream: Upstream,
    private readonly hooks: ExchangeHooks,
  ) {
    this.clientGone = this.going.signal;
    outgoing.once('close', () => {
      this.going.abort();
    });
  }

  /** Counts the exchange as faulted. */
  markFaulted(): void {
    if (this.isFaulted) return;
    this.isFaulted = true;
    this.hooks.markFault();
  }

  /** Forwards the request, and streams the response back. */
  async pass(changes: ForwardOptions = {}): Promise<void> {
    await this.relay(await this.forward(changes));
  }

  /**
   * Forwards the request; resolves with the server's response, whose body is still to come.
   *
   * @throws Error when the server is unreachable, or the client has disconnected meanwhile
   */
  forward({
    target = this.incoming.url ?? '/',
    outlivesClient = false,
  }: ForwardOptions = {}): Promise<IncomingMessage> {
    const { method, body } = this.request;
    return new Promise((resolve, reject) => {
      const request = httpsRequest(`${this.upstream.origin}${target}`, {
        method,
        headers: endToEnd(this.incoming.headers),
        agent: this.upstream.agent,
        ...(outlivesClient ? {} : { signal: this.clientGone }),
      });
      request.once('error', (error) => {
        if (!this.clientGone.aborted) this.hooks.unanswered();
        reject(error);
      });
      request.once('response', resolve);
      request.end(body);
    });
  }

  /** Forwards the request and reads the complete response, of which the client receives nothing yet. */
  async fetchResponse(changes: ForwardOptions = {}): Promise<BufferedResponse> {
    const answer = await this.forward(changes);
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    return { status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) };
  }

  /** Streams a response to the client, through `steps`. */
  async relay(answer: IncomingMessage, ...steps: readonly Transform[]): Promise<void> {
    const headers = endToEnd(answer.headers);
    // A step may change the length.
    if (steps.length > 0) delete headers['content-length'];
    const { statusCode = 502 } = answer;
    this.hooks.answered(statusCode);
    this.outgoing.writeHead(statusCode, headers);
    this.outgoing.flushHeaders();
    await pipeline([answer, ...steps, this.outgoing]);
  }

  /** Sends a complete response. */
  send({ status, headers, body }: BufferedResponse): void {
    this.hooks.answered(status);
    this.outgoing.writeHead(status, { ...endToEnd(headers), 'content-length': body.length });
    this.outgoing.end(body);
  }

  /** Sends the first bytes of a response, whose headers promise all of them, and cuts the connection. */
  async sendTruncated({ status, headers, body }: BufferedResponse, bytes: number): Promise<void> {
    this.markFaulted();
    this.hooks.answered(status);
    this.outgoing.writeHead(status, { ...endToEnd(headers), 'content-length': body.length });
    // Written before the connection ends: a reset may overtake data that is still buffered.
    await new Promise<void>((resolve) => this.outgoing.write(body.subarray(0, bytes), () => resolve()));
    this.outgoing.destroy();
  }

  /** Responds with a Status, as the API server does, without forwarding the request. */
  respondWithError(code: number, reason: string, headers: Readonly<Record<string, string>> = {}): void {
    this.markFaulted();
    const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: `fault: ${reason}`, reason, code };
    this.send({
      status: code,
      headers: { 'content-type': 'application/json', ...headers },
      body: Buffer.from(JSON.stringify(status)),
    });
  }

  /** Cuts the client's connection by a TCP reset. */
  reset(): void {
    this.markFaulted();
    this.hooks.reset();
    this.going.abort();
  }

  /** Sends nothing and waits for the client to give up. */
  async hang(): Promise<void> {
    this.markFaulted();
    if (this.clientGone.aborted) return;
    await new Promise<void>((resolve) => {
      this.clientGone.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}

/**
 * Removes hop-by-hop headers (RFC 9110, 7.6.1) and `accept-encoding`: faults can read only uncompressed
 * bodies.
 */
function endToEnd(headers: IncomingMessage['headers']): Record<string, string | string[]> {
  const oneHop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'host', 'accept-encoding']);
  const rest = Object.entries(headers).filter(([name, value]) => !oneHop.has(name) && value !== undefined);
  return Object.fromEntries(rest) as Record<string, string | string[]>;
}

/** A request to the API server, in the terms of its audit log and RBAC. */
export interface ProxiedRequest {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'other';
  /**
   * `deployments.apps`, `helloapps/status.apps.anupam.com`, `configmaps`; '' for a path that is not a
   * resource.
   */
  readonly resource: string;
  readonly namespace?: string;
  /** Undefined for a collection. */
  readonly name?: string;
  /** The name of the created object, which is only in the body; undefined for Leases and events. */
  readonly createdName?: string;
  readonly url: URL;
  readonly method: string;
  /** Whether it may change an object; a dry run may not. */
  readonly writes: boolean;
  /**
   * Whether it concerns a Lease or an event: these are written all the time, besides the operator's real
   * work.
   */
  readonly isBackground: boolean;
  readonly body: Buffer;
}

const backgroundResources = new Set(['leases.coordination.k8s.io', 'events', 'events.events.k8s.io']);

/**
 * Parses a request.
 *
 * The paths are those of https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
 */
export function proxiedRequest(method: string, target: string, body: Buffer): ProxiedRequest {
  const url = new URL(target, 'https://api-server');
  const { resource = '', namespace, name } = resourceOf(url.pathname);
  const verb = verbOf(method, name, url.searchParams);
  const isBackground = backgroundResources.has(resource);
  const createdName = verb === 'create' && !isBackground ? nameOfNew(body) : undefined;
  return {
    ...{ verb, resource, url, method, body },
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(createdName === undefined ? {} : { createdName }),
    writes: !['get', 'list', 'watch', 'other'].includes(verb) && !url.searchParams.has('dryRun'),
    isBackground,
  };
}

/** `patch deployments.apps shop/web`; for a create, with the name of the new object. */
export function describeRequest({ verb, resource, namespace, name, createdName }: ProxiedRequest): string {
  const object = [namespace, name ?? createdName].filter((part) => part !== undefined).join('/');
  return [verb, resource, object].join(' ').trimEnd();
}

function nameOfNew(body: Buffer): string | undefined {
  const { metadata } = JSON.parse(body.toString('utf8')) as { readonly metadata?: { readonly name?: string } };
  return metadata?.name;
}

function verbOf(method: string, name: string | undefined, query: URLSearchParams): ProxiedRequest['verb'] {
  switch (method) {
    case 'GET':
      if (['1', 'true'].includes(query.get('watch') ?? '')) return 'watch';
      return name === undefined ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return 'delete';
    default:
      return 'other';
  }
}

interface Resource {
  readonly resource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

function resourceOf(path: string): Resource {
  const [root, ...parts] = path.split('/').slice(1).map(decodeURIComponent);
  if (root !== 'api' && root !== 'apis') return {};
  const group = root === 'api' ? '' : (parts.shift() ?? '');
  const rest = parts.slice(1); // the version
  const namespace = rest[0] === 'namespaces' && rest.length > 2 ? rest[1] : undefined;
  const [plural, name, subresource] = namespace === undefined ? rest : rest.slice(2);
  if (plural === undefined) return {};
  const qualified = [subresource === undefined ? plural : `${plural}/${subresource}`, group].filter(
    (part) => part !== '',
  );
  return {
    resource: qualified.join('.'),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  };
}
