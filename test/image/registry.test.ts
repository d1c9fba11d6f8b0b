import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { mediaTypes, readAll } from '../../image/oci';
import { RegistryAuth } from '../../image/registry-auth';
import { CertificateAuthority } from '../../local/certificates';
import { user } from '../support/registry';
import { temporaryFolder } from '../support/temporary-folder';
import { auth, clientOf, dockerConfig, dockerConfigPath, messageOf, withServer } from './registry-clients';

const folder = temporaryFolder('kindred-registry-');

/** A registry with one manifest that only the test user may read. */
const withPassword: RequestListener = (request, response) => {
  if (request.headers.authorization === `Basic ${auth(user.password)}`)
    response.writeHead(200, { 'content-type': mediaTypes.manifest }).end('{}');
  else response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end();
};

describe('a registry that wants a password', () => {
  const withRegistry = (run: (host: string) => Promise<void>): Promise<void> => withServer(withPassword, run);
  const read = async (host: string, config?: string, env?: NodeJS.ProcessEnv): Promise<string> =>
    (await clientOf(host, config, env).manifest('app', '1')).descriptor.mediaType;

  test('gets that of docker login', () =>
    withRegistry(async (host) => {
      const stored = [
        { auth: auth(user.password) },
        { auth: Buffer.from(`${user.name}:${user.password}\0\0`).toString('base64') },
        { username: user.name, password: user.password },
      ];
      for (const [i, entry] of stored.entries()) {
        const config = dockerConfig(`login${i}`, { auths: { [host]: entry } });
        expect(await read(host, config)).toBe(mediaTypes.manifest);
      }
      const old = dockerConfig('old', { auths: { [`https://${host}/v1/`]: { auth: auth(user.password) } } });
      expect(await read(host, old)).toBe(mediaTypes.manifest);
    }));

  test('gets that of a credential helper, which gets the name of the registry on stdin', () =>
    withRegistry(async (host) => {
      const bin = join(folder, 'bin');
      mkdirSync(bin, { recursive: true });
      const helper = join(bin, 'docker-credential-test');
      const answer = JSON.stringify({ ServerURL: host, Username: user.name, Secret: user.password });
      writeFileSync(
        helper,
        `#!/bin/sh\n[ "$*" = get ] && [ "$(cat)" = ${host} ] && echo '${answer}' || { echo credentials not found in native keychain; exit 1; }\n`,
      );
      chmodSync(helper, 0o755);
      const env = { PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}` };
      const config = dockerConfig('helper', { credHelpers: { [host]: 'test' } });
      expect(await read(host, config, env)).toBe(mediaTypes.manifest);
      const store = dockerConfig('store', { credsStore: 'test' });
      expect(await read(host, store, env)).toBe(mediaTypes.manifest);
      // The store does not know this name of the same registry.
      const other = host.replace('127.0.0.1', 'localhost');
      expect(await messageOf(read(other, store, env))).toMatch(/wants credentials, and there are none/);
    }));

  test('says that credentials are missing, wrong, or cannot be read', () =>
    withRegistry(async (host) => {
      const missing = await messageOf(read(host));
      expect(missing).toContain(
        `the registry ${host} wants credentials, and there are none for it in ${dockerConfigPath('none')}`,
      );
      expect(missing).toMatch(new RegExp(`run: docker login ${host}$`));
      const wrong = dockerConfig('wrong', { auths: { [host]: { auth: auth('wr0ng') } } });
      expect(await messageOf(read(host, wrong))).toBe(
        `the registry ${host} refuses the credentials of ${dockerConfigPath('wrong')}. Run: docker login ${host}`,
      );
      const broken = dockerConfig('broken', `{ "auths": { "${host}": { "auth": "${auth('wr0ng')}" `);
      expect(await messageOf(read(host, broken))).toMatch(/is not valid JSON\. Correct it\.$/);
      const odd = dockerConfig('odd', { auths: { [host]: { auth: 'AAAA' } } });
      expect(await messageOf(read(host, odd))).toMatch(/cannot be read\. Run: docker login/);
      const absent = dockerConfig('absent', { credHelpers: { [host]: 'is-not-there' } });
      expect(await messageOf(read(host, absent))).toMatch(
        /credential helper docker-credential-is-not-there, which .* names, is not on PATH/,
      );
    }));
});

/** What no good registry does. */
describe('a registry that misbehaves', () => {
  const digest = `sha256:${'1'.repeat(64)}`;

  test('is refused if it answers with another content than that of the digest', async () => {
    const listener: RequestListener = (_, response) => void response.setHeader('content-type', 'x/y').end('{}');
    await withServer(listener, async (host) => {
      expect(await messageOf(clientOf(host).manifest('a', digest))).toMatch(
        /answers with sha256:44136f.* when asked for .*1111/,
      );
      const blob = clientOf(host).blob('a', { mediaType: 'x', digest, size: 2 });
      expect(await messageOf(readAll(blob.open()))).toMatch(
        /the content of sha256:1111\w+ is not what its digest says/,
      );
    });
  });

  test('does not get its secrets shown, not even if it repeats them', async () => {
    const listener: RequestListener = (request, response) => {
      const { authorization } = request.headers;
      if (authorization === undefined) response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
      else
        response
          .writeHead(403)
          .end(JSON.stringify({ errors: [{ code: 'DENIED', message: `no ${authorization} ${user.password}` }] }));
    };
    await withServer(listener, async (host) => {
      const config = dockerConfig('echo', { auths: { [host]: { auth: auth(user.password) } } });
      expect(await messageOf(clientOf(host, config).manifest('a', '1'))).toMatch(
        /with 403 \(DENIED: no Basic \*\*\* \*\*\*\)\. The user whose credentials are those of .* may not do that/,
      );
    });
  });

  test('does not send the password to where a blob is stored', async () => {
    const seen: (string | undefined)[] = [];
    const storage: RequestListener = (request, response) => {
      seen.push(request.headers.authorization);
      response.end('{}');
    };
    await withServer(storage, async (other) => {
      const listener: RequestListener = (request, response) => {
        if (request.headers.authorization === undefined) response.writeHead(401, { 'www-authenticate': 'Basic' }).end();
        else response.writeHead(307, { location: `http://${other}/stored` }).end();
      };
      await withServer(listener, async (host) => {
        const config = dockerConfig('redirect', { auths: { [host]: { auth: auth(user.password) } } });
        await messageOf(clientOf(host, config).manifest('a', digest));
      });
    });
    expect(seen).toEqual([undefined]);
  });

  // By this address, which no registry of this machine has by convention, it is asked with TLS.
  const withTls = (host: string): string => host.replace('127.0.0.1', '0.0.0.0');

  test('that speaks no TLS, or has a certificate of an unknown authority, is told apart', async () => {
    await withServer(
      (_, response) => void response.end(),
      async (host) => {
        const found = await messageOf(clientOf(withTls(host)).manifest('a', '1'));
        expect(found).toMatch(/^the registry 0\.0\.0\.0:\d+ cannot be reached: .*give --plain-http=HOST if it does/s);
      },
    );
    const { certificate, key } = new CertificateAuthority('unknown').server('unknown', ['0.0.0.0']);
    const server = createTlsServer({ cert: certificate, key }, (_, response) => void response.end()).listen(
      0,
      '127.0.0.1',
    );
    await once(server, 'listening');
    try {
      const host = `0.0.0.0:${(server.address() as AddressInfo).port}`;
      expect(await messageOf(clientOf(host).manifest('a', '1'))).toMatch(/cannot be reached: .*NODE_EXTRA_CA_CERTS/);
    } finally {
      server.close();
    }
  });

  test('with TLS that wants credentials sent without it is refused', async () => {
    const auth = new RegistryAuth(new URL('https://r.example.com'), {
      host: 'r.example.com',
      configFile: 'config.json',
      send: () => Promise.reject(new Error('nothing may be sent')),
      credentials: () =>
        Promise.resolve({ source: 'config.json', secret: { type: 'identity-token', token: user.refreshToken } }),
    });
    expect(await messageOf(auth.authorize('Bearer realm="http://tokens.example.com/"', []))).toBe(
      'the registry r.example.com asks to send credentials to tokens.example.com without TLS, which is refused',
    );
  });

  test('that is not there is named, with what to check', async () => {
    expect(await messageOf(clientOf('127.0.0.1:1').manifest('a', '1'))).toMatch(
      /^the registry 127\.0\.0\.1:1 cannot be reached: .*ECONNREFUSED.*HTTPS_PROXY/,
    );
  });
});
