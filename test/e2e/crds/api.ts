import { readFile } from 'node:fs/promises';
import { Agent, request } from 'undici';
import { parse } from 'yaml';
import { crdManifest } from '../../../constructs/crd';
import type { AnyKind } from '../../../constructs/kind/kind';
import { waitFor } from '../../../testing/wait-for';

/** An answer of the API server. */
interface Answer {
  readonly status: number;
  readonly body: { readonly message?: string; readonly [field: string]: unknown };
}

interface Kubeconfig {
  readonly clusters: readonly [{ readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string } }];
  readonly users: readonly [
    { readonly user: { readonly 'client-certificate-data': string; readonly 'client-key-data': string } },
  ];
}

/** Plain requests of the administrator: these tests are about the server's answers, not about a client. */
export class Api {
  private constructor(
    private readonly server: string,
    private readonly agent: Agent,
  ) {}

  static async of(kubeconfig: string): Promise<Api> {
    const { clusters, users } = parse(await readFile(kubeconfig, 'utf8')) as Kubeconfig;
    const { cluster } = clusters[0];
    const { user } = users[0];
    const decoded = (text: string): string => Buffer.from(text, 'base64').toString('utf8');
    const connect = {
      ca: decoded(cluster['certificate-authority-data']),
      cert: decoded(user['client-certificate-data']),
      key: decoded(user['client-key-data']),
    };
    return new Api(cluster.server, new Agent({ connect }));
  }

  async ask(method: keyof typeof methods, path: string, body?: unknown): Promise<Answer> {
    const response = await request(`${this.server}${path}`, {
      dispatcher: this.agent,
      method: methods[method].verb,
      headers: { 'content-type': methods[method].type },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.statusCode, body: (await response.body.json()) as Answer['body'] };
  }

  async close(): Promise<void> {
    await this.agent.close();
  }
}

const json = 'application/json';
/** What the API server is asked; APPLY is server-side apply. */
const methods = {
  GET: { verb: 'GET', type: json },
  POST: { verb: 'POST', type: json },
  PUT: { verb: 'PUT', type: json },
  DELETE: { verb: 'DELETE', type: json },
  PATCH: { verb: 'PATCH', type: 'application/merge-patch+json' },
  APPLY: { verb: 'PATCH', type: 'application/apply-patch+yaml' },
} as const;

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

interface Crd {
  readonly status?: { readonly conditions?: readonly { type: string; status: string; message: string }[] };
}

/**
 * Installs a kind's CRD and waits until it is established. The server estimates the cost of every rule when it takes the CRD, and refuses
 * what exceeds the budget.
 */
export async function installCrd(api: Api, kind: AnyKind): Promise<void> {
  const { status, body } = await api.ask('POST', `${CRDS}?fieldValidation=Strict`, crdManifest(kind));
  expect({ status, message: body.message }).toEqual({ status: 201, message: undefined });
  await waitFor(
    async () => {
      const crd = (await api.ask('GET', `${CRDS}/${kind.crdName}`)).body as Crd;
      const conditions = crd.status?.conditions ?? [];
      expect(conditions.filter(({ type }) => type === 'NonStructuralSchema')).toEqual([]);
      return conditions.some(({ type, status: state }) => type === 'Established' && state === 'True');
    },
    { describe: `${kind.crdName} to be established` },
  );
}
