import { spawn } from 'node:child_process';
import { sign } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { CertificateAuthority } from '../../local/certificates';
import { freePort } from '../../local/ports';
import { goTool } from './go-tools/build';

/** The user of registries that want credentials. */
export const user = { name: 'kindred', password: 's3cret-of-registry', refreshToken: 'r3fresh-of-registry' };
/** The password as htpasswd wants it, with bcrypt, which Node.js does not have. */
const HTPASSWD = `${user.name}:$2b$04$EtK3KUL/k3PlY.ED64l/vu.Lb.Sesqpj3Y2golzzJyJzaNng3DyRu\n`;
const SERVICE = 'registry-of-test';

/** How a registry authorizes: not at all, by password, or by tokens, without which only `public/` can be read. */
export type Login = 'none' | 'basic' | 'token';

/** A registry on this machine: the one of the CNCF's project distribution. */
export interface TestRegistry {
  /** `127.0.0.1:5000` */
  readonly host: string;
  /** Requests to the token server: method, and scopes. */
  readonly tokenRequests: readonly string[];
  end(): Promise<void>;
}

/** @param folder where its data and configuration lie */
export async function startRegistry(folder: string, login: Login = 'none'): Promise<TestRegistry> {
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const tokens = login === 'token' ? await startTokenServer(folder) : undefined;
  writeFileSync(join(folder, 'htpasswd'), HTPASSWD);
  const auth = {
    none: '',
    basic: `auth: { htpasswd: { realm: test, path: ${join(folder, 'htpasswd')} } }\n`,
    token: `auth: { token: { realm: '${tokens?.url ?? ''}', service: ${SERVICE}, issuer: test, rootcertbundle: ${join(folder, 'ca.pem')} } }\n`,
  }[login];
  const file = join(folder, 'config.yml');
  writeFileSync(
    file,
    `version: 0.1\nlog: { level: error }\nstorage: { filesystem: { rootdirectory: ${join(folder, 'data')} }, delete: { enabled: true } }\n` +
      `http: { addr: '127.0.0.1:${port}' }\n${auth}`,
  );
  const child = spawn(goTool('registry'), ['serve', file], { stdio: 'ignore' });
  const host = `127.0.0.1:${port}`;
  const deadline = Date.now() + 20_000;
  while ((await fetch(`http://${host}/v2/`).catch(() => undefined)) === undefined) {
    if (Date.now() > deadline || child.exitCode !== null) throw new Error(`the registry does not start (${file})`);
    await new Promise((done) => setTimeout(done, 20));
  }
  return {
    host,
    tokenRequests: tokens?.requests ?? [],
    async end() {
      const ended = once(child, 'exit');
      child.kill();
      await ended;
      tokens?.server.close();
    },
  };
}

/** The password of `Authorization: Basic`. */
function basicPassword(request: IncomingMessage): string | undefined {
  const [, encoded = ''] = /^Basic (.*)$/.exec(request.headers.authorization ?? '') ?? [];
  return Buffer.from(encoded, 'base64').toString().split(':')[1];
}

async function startTokenServer(
  folder: string,
): Promise<{ readonly url: string; readonly server: Server; readonly requests: readonly string[] }> {
  const authority = new CertificateAuthority('tokens');
  writeFileSync(join(folder, 'ca.pem'), authority.certificate);
  const signer = authority.server('tokens', ['localhost']);
  const requests: string[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const body = Buffer.concat(await request.toArray()).toString();
      const query = new URL(request.url ?? '', 'http://x').searchParams;
      const form = new URLSearchParams(body);
      const scopes = [...query.getAll('scope'), ...form.getAll('scope').flatMap((scope) => scope.split(' '))];
      requests.push(`${request.method ?? ''} ${scopes.join(' ')}`);
      const password = basicPassword(request);
      const isUser = password === user.password || form.get('refresh_token') === user.refreshToken;
      if (!isUser && (password ?? form.get('refresh_token') ?? undefined) !== undefined) {
        response.writeHead(401).end();
        return;
      }
      response.end(JSON.stringify({ token: tokenFor(signer, scopes, isUser) }));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`, server, requests };
}

/** A token by which the registry allows everything to the user, and to others to read `public/`. */
function tokenFor(
  { certificate, key }: { readonly certificate: string; readonly key: string },
  scopes: readonly string[],
  isUser: boolean,
): string {
  const access = scopes.flatMap((scope) => {
    const [type, name = '', actions = ''] = scope.split(':');
    const allowed = actions.split(',').filter((action) => isUser || (name.startsWith('public/') && action === 'pull'));
    return [{ type, name, actions: allowed }];
  });
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: 'test',
    sub: isUser ? user.name : '',
    aud: SERVICE,
    exp: now + 300,
    nbf: now - 10,
    iat: now,
    jti: '1',
    access,
  };
  const x5c = [certificate.replace(/-----.*-----|\s/g, '')];
  const signed = [{ typ: 'JWT', alg: 'ES256', x5c }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}
