import type { IncomingMessage, ServerResponse } from 'node:http';
import { request as httpsRequest, type Agent } from 'node:https';
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Where requests go. */
export interface Upstream {
  readonly origin: string;
  readonly agent: Agent;
}

/** An answer that was read as a whole. */
export interface BufferedResponse {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** What the proxy does and notes for an exchange. */
interface ExchangeHooks {
  /** Cuts the client's connection by a TCP reset. */
  readonly reset: () => void;
  /** The exchange was hurt; called once at most. */
  readonly hurt: () => void;
  /** The server could not be reached, or went away before it began to answer, while the client still waited. */
  readonly unanswered: () => void;
  /** The client is being sent an answer of this HTTP status. */
  readonly answered: (status: number) => void;
}

/** What a forwarded request may differ in. */
interface ForwardOptions {
  /** Path and query. @default as it came */
  readonly target?: string;
  /** The request goes on to the server even when the client has gone, as one does that was in flight. @default false */
  readonly outlivesClient?: boolean;
}

/**
 * One request and what is done with it. A fault composes these steps; `pass` is what a proxy does that does no harm.
 *
 * Guarantee: whatever becomes of the upstream, the client sees either an answer or the end of its connection, never silence that
 * nobody asked for. Whatever differs from a pass counts as hurt: steps that can do nothing else count by themselves, of the others a fault
 * says so, by `hurt`, when it has come to it.
 */
export class Exchange {
  /** Aborts when the client has gone, or was sent away. */
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

  /** Counts the exchange as hurt. */
  markFaulted(): void {
    if (this.isFaulted) return;
    this.isFaulted = true;
    this.hooks.hurt();
  }

  /** Sends the request on and the answer back as it comes. */
  async pass(changes: ForwardOptions = {}): Promise<void> {
    await this.relay(await this.forward(changes));
  }

  /**
   * Sends the request on; resolves with the server's answer, whose body is still to come.
   *
   * @throws Error when the server could not be reached, or the client has gone meanwhile
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

  /** Sends the request on and reads the whole answer, of which the client learns nothing yet. */
  async fetchResponse(changes: ForwardOptions = {}): Promise<BufferedResponse> {
    const answer = await this.forward(changes);
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    return { status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) };
  }

  /** Brings an answer to the client as it comes, through `steps`. */
  async relay(answer: IncomingMessage, ...steps: readonly Transform[]): Promise<void> {
    const headers = endToEnd(answer.headers);
    // What passes through a step need not be as long as it was.
    if (steps.length > 0) delete headers['content-length'];
    const { statusCode = 502 } = answer;
    this.hooks.answered(statusCode);
    this.outgoing.writeHead(statusCode, headers);
    this.outgoing.flushHeaders();
    await pipeline([answer, ...steps, this.outgoing]);
  }

  /** Answers with a whole answer. */
  send({ status, headers, body }: BufferedResponse): void {
    this.hooks.answered(status);
    this.outgoing.writeHead(status, { ...endToEnd(headers), 'content-length': body.length });
    this.outgoing.end(body);
  }

  /** Sends the first bytes of a whole answer, whose headers promise all of them, and cuts the connection. */
  async sendTruncated({ status, headers, body }: BufferedResponse, bytes: number): Promise<void> {
    this.markFaulted();
    this.hooks.answered(status);
    this.outgoing.writeHead(status, { ...endToEnd(headers), 'content-length': body.length });
    // Sent before the connection ends: a reset may overtake what was written.
    await new Promise<void>((resolve) => this.outgoing.write(body.subarray(0, bytes), () => resolve()));
    this.outgoing.destroy();
  }

  /** Refuses as the API server does, with a Status, without asking it. */
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

  /** Waits, without a word, for the client to give up. */
  async hang(): Promise<void> {
    this.markFaulted();
    if (this.clientGone.aborted) return;
    await new Promise<void>((resolve) => {
      this.clientGone.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}

/** Headers of one hop are not passed on: RFC 9110, 7.6.1. Bodies are not compressed, so that faults can read them. */
function endToEnd(headers: IncomingMessage['headers']): Record<string, string | string[]> {
  const oneHop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'host', 'accept-encoding']);
  const rest = Object.entries(headers).filter(([name, value]) => !oneHop.has(name) && value !== undefined);
  return Object.fromEntries(rest) as Record<string, string | string[]>;
}

/** What a request asks of the API server, in the words of its audit log and RBAC. */
export interface ProxiedRequest {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'other';
  /** `deployments.apps`, `helloapps/status.apps.anupam.com`, `configmaps`; '' for what is no resource. */
  readonly resource: string;
  readonly namespace?: string;
  /** Undefined for a collection. */
  readonly name?: string;
  /** Of what is created, which the request's line does not tell; of no Lease and no event. */
  readonly creates?: string;
  readonly url: URL;
  readonly method: string;
  /** Whether it may change an object. */
  readonly writes: boolean;
  /** Whether it is about a Lease or an event: these are renewed and told all the time, beside the work. */
  readonly beside: boolean;
  readonly body: Buffer;
}

const backgroundResources = new Set(['leases.coordination.k8s.io', 'events', 'events.events.k8s.io']);

/**
 * Reads a request.
 *
 * The paths are those of https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
 */
export function proxiedRequest(method: string, target: string, body: Buffer): ProxiedRequest {
  const url = new URL(target, 'https://api-server');
  const { resource = '', namespace, name } = resourceOf(url.pathname);
  const verb = verbOf(method, name, url.searchParams);
  const beside = backgroundResources.has(resource);
  const creates = verb === 'create' && !beside ? nameOfNew(body) : undefined;
  return {
    ...{ verb, resource, url, method, body },
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(creates === undefined ? {} : { creates }),
    writes: !['get', 'list', 'watch', 'other'].includes(verb),
    beside,
  };
}

/** `patch deployments.apps shop/web`; a create bears the name of what is new. */
export function describeRequest({ verb, resource, namespace, name, creates }: ProxiedRequest): string {
  const object = [namespace, name ?? creates].filter((part) => part !== undefined).join('/');
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
