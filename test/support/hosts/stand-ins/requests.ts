import { Agent, request } from 'node:https';
import { request as plainRequest } from 'node:http';

/** An answer, whatever its status. */
export interface HttpResponse {
  readonly status: number;
  readonly text: string;
}

/** Who asks. Without a certificate, nobody is checked on either side. */
export interface Identity {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const agents = new WeakMap<Identity, Agent>();

/** Asks a server. @param type - of the body. @default application/json */
export function sendRequest(
  method: string,
  url: string,
  options: { readonly body?: unknown; readonly identity?: Identity; readonly type?: string } = {},
): Promise<HttpResponse> {
  const { body, identity, type = 'application/json' } = options;
  const send = url.startsWith('https:') ? request : plainRequest;
  return new Promise((resolve, reject) => {
    const asked = send(
      url,
      {
        method,
        headers: { 'content-type': type },
        timeout: 10_000,
        ...(url.startsWith('https:') &&
          (identity === undefined ? { rejectUnauthorized: false } : { agent: agentOf(identity) })),
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
        response.once('error', reject);
      },
    );
    asked.once('timeout', () => asked.destroy(new Error(`${url} does not answer`)));
    asked.once('error', reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function agentOf(identity: Identity): Agent {
  const agent = agents.get(identity) ?? new Agent({ ...identity, keepAlive: true });
  agents.set(identity, agent);
  return agent;
}
