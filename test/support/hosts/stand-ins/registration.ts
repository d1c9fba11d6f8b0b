import { timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { CertificateAuthority } from '../../../../local/plane/certificates';
import type { Pki } from '../../../../local/plane/pki';
import { readFileSync } from 'node:fs';
import { addMember, promoteMember } from './etcd';
import { fail } from './children';
import { ask, type Identity } from './requests';
import type { Settings } from './settings';
import { identity, type Bootstrap } from './tls';

/** The port of RKE2's supervisor. That of K3s shares one with the API; its stand-in has this one too. */
const PORT = 9345;

/** What a server gets that joins. */
export interface ServerGrant {
  readonly bootstrap: Bootstrap;
  /** `--initial-cluster` of its etcd. */
  readonly cluster: string;
}

interface Asked {
  readonly token: string;
  readonly what: 'join-server' | 'join-agent' | 'promote';
  readonly name: string;
  readonly address: string;
}

/** Serves those that join. */
export function serveRegistration({ token }: Settings, bootstrap: Bootstrap, { authority, files }: Pki): void {
  const keys = { cert: readFileSync(files.serverCertificate), key: readFileSync(files.serverKey) };
  const server = createServer(keys, (request, response) => {
    void answer(request, token, bootstrap, authority).then(
      ({ status, body }) => response.writeHead(status).end(body),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  server.once('error', (error) => fail(`the supervisor cannot listen: ${error.message}`));
  server.listen(PORT);
}

async function answer(
  request: IncomingMessage,
  token: string,
  bootstrap: Bootstrap,
  authority: CertificateAuthority,
): Promise<{ status: number; body: string }> {
  if (request.url === '/ping') return { status: 200, body: 'pong' };
  let text = '';
  for await (const chunk of request) text += String(chunk);
  const asked = JSON.parse(text) as Asked;
  if (!same(asked.token, token)) return { status: 401, body: 'not authorized' };
  switch (asked.what) {
    case 'join-server': {
      const grant: ServerGrant = { bootstrap, cluster: await addMember(asked.name, asked.address) };
      return { status: 200, body: JSON.stringify(grant) };
    }
    case 'join-agent':
      return {
        status: 200,
        body: JSON.stringify(identity(authority, `system:node:${asked.name}`, ['system:masters'])),
      };
    case 'promote':
      return { status: (await promoteMember(asked.address)) ? 200 : 503, body: '' };
  }
}

const same = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

/** Asks the server that is to be joined. @throws when it does not answer, or not yet; a token that it refuses ends this process */
async function askServer(settings: Settings, what: Asked['what']): Promise<string> {
  const { join = '', token, nodeName: name, nodeIp: address } = settings;
  const { status, text } = await ask('POST', `https://${join}:${PORT}/`, { body: { token, what, name, address } });
  if (status === 401) fail(`starting: ${join} does not take the token: not authorized`);
  if (status !== 200) throw new Error(`${join} answers ${status}: ${text}`);
  return text;
}

export async function joinAsServer(settings: Settings): Promise<ServerGrant> {
  return JSON.parse(await askServer(settings, 'join-server')) as ServerGrant;
}

export async function joinAsAgent(settings: Settings): Promise<Identity> {
  return JSON.parse(await askServer(settings, 'join-agent')) as Identity;
}

/** Asks for this server's etcd to count. */
export async function promote(settings: Settings): Promise<true> {
  await askServer(settings, 'promote');
  return true;
}
