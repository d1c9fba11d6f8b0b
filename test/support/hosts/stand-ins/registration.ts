import { timingSafeEqual } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { CertificateAuthority, signingKeyPair, type Pki } from '../../../../local/certificates';
import { addMember, promoteMember } from './etcd';
import { sendRequest, type Identity } from './requests';
import { fail, type Settings } from './settings';

/** The port of RKE2's supervisor. That of K3s shares one with the API; its stand-in has this one too. */
const PORT = 9345;

/** What a server gets that joins. */
interface ServerGrant {
  readonly bootstrap: Bootstrap;
  /** `--initial-cluster` of its etcd. */
  readonly cluster: string;
}

interface RegistrationRequest {
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
  const asked = JSON.parse(text) as RegistrationRequest;
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
async function askServer(settings: Settings, what: RegistrationRequest['what']): Promise<string> {
  const { join = '', token, nodeName: name, nodeIp: address } = settings;
  const { status, text } = await sendRequest('POST', `https://${join}:${PORT}/`, {
    body: { token, what, name, address },
  });
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

/** What all servers of a cluster share; those that join get it from one that is there. */
export interface Bootstrap {
  readonly authorityCertificate: string;
  readonly authorityKey: string;
  readonly serviceAccountKey: string;
  readonly serviceAccountPublicKey: string;
}

const files = {
  authorityCertificate: 'server-ca.crt',
  authorityKey: 'server-ca.key',
  serviceAccountKey: 'service.key',
  serviceAccountPublicKey: 'service.pub',
} as const;

const folderOf = ({ data }: Settings): string => join(data, 'server', 'tls');

/** What was kept by an earlier run on this machine. */
export function loadBootstrap(settings: Settings): Bootstrap | undefined {
  const folder = folderOf(settings);
  if (!existsSync(join(folder, 'complete'))) return undefined;
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  return {
    authorityCertificate: read(files.authorityCertificate),
    authorityKey: read(files.authorityKey),
    serviceAccountKey: read(files.serviceAccountKey),
    serviceAccountPublicKey: read(files.serviceAccountPublicKey),
  };
}

export function newBootstrap(): Bootstrap {
  const authority = new CertificateAuthority('stand-in-ca');
  const tokens = signingKeyPair();
  return {
    authorityCertificate: authority.certificate,
    authorityKey: authority.key,
    serviceAccountKey: tokens.privateKey,
    serviceAccountPublicKey: tokens.publicKey,
  };
}

/** Writes what is shared, and this server's own certificate, into its data folder. */
export function writePki(settings: Settings, bootstrap: Bootstrap): Pki {
  const folder = folderOf(settings);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  const { authorityCertificate: certificate, authorityKey: key } = bootstrap;
  const authority = new CertificateAuthority('stand-in-ca', { certificate, key });
  const names = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', '127.0.0.1', '10.96.0.1'];
  const hosts = [...new Set([...names, settings.nodeIp, settings.nodeName, ...settings.sans])];
  const server = authority.server('kube-apiserver', hosts);
  const shared = Object.fromEntries(
    Object.entries(files).map(([what, name]) => [what, write(name, bootstrap[what as keyof Bootstrap])]),
  ) as Record<keyof Bootstrap, string>;
  const own = {
    serverCertificate: write('apiserver.crt', server.certificate),
    serverKey: write('apiserver.key', server.key),
  };
  write('complete', '');
  return { authority, files: { ...shared, ...own } };
}

/** A client of the API, in a group if need be. */
export function identity(authority: CertificateAuthority, commonName: string, organizations: string[]): Identity {
  const { certificate: cert, key } = authority.client({ commonName, organizations });
  return { ca: authority.certificate, cert, key };
}
