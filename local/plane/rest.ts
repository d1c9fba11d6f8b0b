import { Agent, request } from 'undici';
import { LocalControlPlaneError } from '../errors';
import type { KeyedCertificate } from './certificates';

/** An answer of the API server. */
export interface RestAnswer {
  readonly status: number;
  /** The body: parsed when it is JSON, else text. */
  readonly body: unknown;
}

/** How to ask. */
export interface RestOptions {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** @default application/json */
  readonly contentType?: string;
  /** For the whole request, in milliseconds. @default 5000 */
  readonly timeoutMs?: number;
}

/** The control plane's own client: a few administrator's requests, no more. */
export class RestClient {
  readonly #agent: Agent;

  constructor(
    readonly server: string,
    authority: string,
    user: KeyedCertificate,
  ) {
    this.#agent = new Agent({ connect: { ca: authority, cert: user.certificate, key: user.key, timeout: 2000 } });
  }

  /** Asks and gives the answer, whatever its status. Throws only when there is none. */
  async ask(method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, options: RestOptions = {}): Promise<RestAnswer> {
    const response = await request(`${this.server}${path}`, {
      dispatcher: this.#agent,
      method,
      headers: { 'content-type': options.contentType ?? 'application/json', accept: 'application/json' },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      signal: AbortSignal.timeout(options.timeoutMs ?? 5000),
    });
    const text = await response.body.text();
    const isJson = String(response.headers['content-type']).startsWith('application/json');
    return { status: response.statusCode, body: isJson ? (JSON.parse(text) as unknown) : text };
  }

  /** Creates an object; one that is there already is left as it is. */
  async create(path: string, object: unknown): Promise<void> {
    const answer = await this.ask('POST', path, { body: object });
    if (answer.status < 300 || answer.status === 409) return;
    throw new LocalControlPlaneError(`cannot create an object at ${path}: ${describe(answer)}`);
  }

  /** Drops every connection. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** An answer in words: its status, and the message of a Kubernetes `Status`. */
export function describe({ status, body }: RestAnswer): string {
  const message = typeof body === 'object' && body !== null ? (body as { message?: unknown }).message : body;
  return `the API server answered ${status}${typeof message === 'string' && message !== '' ? `: ${message}` : ''}`;
}
