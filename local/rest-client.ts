import { Agent, request } from 'undici';
import { dump } from 'js-yaml';
import { LocalControlPlaneError } from './assets/errors';
import type { KeyedCertificate } from './certificates';

/** A response of the API server. */
interface RestResponse {
  readonly status: number;
  /** The body: parsed when it is JSON, else text. */
  readonly body: unknown;
}

/** Options of a request. */
interface RestOptions {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** @default application/json */
  readonly contentType?: string;
  /** Timeout of the whole request, in milliseconds. @default 5000 */
  readonly timeoutMs?: number;
}

/** The control plane's own client, for the administrator's few requests. */
export class RestClient {
  readonly #agent: Agent;

  constructor(
    readonly server: string,
    authority: string,
    user: KeyedCertificate,
  ) {
    this.#agent = new Agent({ connect: { ca: authority, cert: user.certificate, key: user.key, timeout: 2000 } });
  }

  /** Returns the response, whatever its status. Throws only when there is none. */
  async request(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH',
    path: string,
    options: RestOptions = {},
  ): Promise<RestResponse> {
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

  /** Creates an object; one that exists already is left unchanged. */
  async create(path: string, object: unknown): Promise<void> {
    const answer = await this.request('POST', path, { body: object });
    if (answer.status < 300 || answer.status === 409) return;
    throw new LocalControlPlaneError(`cannot create an object at ${path}: ${describeResponse(answer)}`);
  }

  /** Closes every connection. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** A response in words: its status, and the message of a Kubernetes `Status`. */
export function describeResponse({ status, body }: RestResponse): string {
  const message = typeof body === 'object' && body !== null ? (body as { message?: unknown }).message : body;
  return `the API server answered ${status}${typeof message === 'string' && message !== '' ? `: ${message}` : ''}`;
}

/** The credentials of a kubeconfig's user: a client certificate with its key (PEM), or a bearer token. */
type Credentials = { readonly certificate: string; readonly key: string } | { readonly token: string };

/** The content of a kubeconfig. */
interface KubeconfigContent {
  readonly server: string;
  /** The authority that signed the server's certificate, PEM. */
  readonly authority: string;
  readonly user: string;
  readonly credentials: Credentials;
  /** The namespace of requests that name none. @default default */
  readonly namespace?: string;
}

/** A kubeconfig with one context, as YAML; certificates are embedded, so the file can be copied anywhere. */
export function renderKubeconfig(content: KubeconfigContent): string {
  const { credentials } = content;
  const user =
    'token' in credentials
      ? { token: credentials.token }
      : {
          'client-certificate-data': base64(credentials.certificate),
          'client-key-data': base64(credentials.key),
        };
  const cluster = 'kindred-local';
  return dump(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: cluster,
          cluster: { server: content.server, 'certificate-authority-data': base64(content.authority) },
        },
      ],
      users: [{ name: content.user, user }],
      contexts: [
        { name: cluster, context: { cluster, user: content.user, namespace: content.namespace ?? 'default' } },
      ],
      'current-context': cluster,
    },
    { lineWidth: -1, noRefs: true },
  );
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}
