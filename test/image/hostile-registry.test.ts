import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { registryBase } from '../../image/base';
import { mediaTypes, readAll, sha256 } from '../../image/oci';
import { parseReference } from '../../image/reference';
import { Registry } from '../../image/registry';
import { RegistryTransport } from '../../image/transport';
import { user } from '../support/registry';
import { temporaryFolder } from '../support/temporary-folder';
import { tinyImage } from './images';
import { auth, clientOf, dockerConfig, messageOf, push, withServer } from './registry-clients';

// What registries, and what stands before them, do otherwise than the specification says, or in bad faith.

const folder = temporaryFolder('kindred-hostile-');

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

/** A registry of these answers, by method and the beginning of the path. The first one that fits is given. */
function answers(routes: readonly (readonly [route: string, handler: Handler])[]): RequestListener {
  return (request, response) => {
    request.resume();
    const asked = `${request.method ?? ''} ${request.url ?? ''}`;
    const [, handler] = routes.find(([route]) => asked.startsWith(route)) ?? [];
    if (handler === undefined) response.writeHead(404).end();
    else request.on('end', () => handler(response, request));
  };
}

const reply =
  (status: number, headers: Readonly<Record<string, string>> = {}, body = ''): Handler =>
  (response) =>
    void response.writeHead(status, headers).end(body);

const json = (value: unknown, type: string = mediaTypes.manifest): Handler =>
  reply(200, { 'content-type': type }, JSON.stringify(value));

/** A registry in which a push works, with some answers of its own. */
const accepting = (own: readonly (readonly [string, Handler])[] = []): RequestListener =>
  answers([
    ...own,
    ['HEAD /v2/', reply(404)],
    ['POST /v2/', reply(202, { location: '/v2/upload' })],
    ['PATCH /v2/', reply(202, { location: '/v2/upload' })],
    ['PUT /v2/', reply(201)],
  ]);

const user1 = (host: string): string => dockerConfig('user', { auths: { [host]: { auth: auth(user.password) } } });

describe('credentials go to nobody else', () => {
  test.each(['Basic realm="x"', 'Bearer realm="http://HOST/token",service="s"'])(
    'a host of redirects that asks for them by %s',
    async (challenge) => {
      const seen: (string | undefined)[] = [];
      const asking: RequestListener = (request, response) => {
        seen.push(request.headers.authorization);
        response.writeHead(401, { 'www-authenticate': challenge.replace('HOST', request.headers.host ?? '') }).end();
      };
      await withServer(asking, async (other) => {
        const elsewhere = { location: `http://${other}/stored` };
        const routes: readonly (readonly [string, Handler])[] = [
          ['GET /v2/a/blobs', reply(307, elsewhere)],
          ['POST /v2/a/blobs', reply(202, elsewhere)],
        ];
        await withServer(accepting(routes), async (host) => {
          const blob = clientOf(host, user1(host)).blob('a', { mediaType: 'x', digest: sha256('x'), size: 1 });
          expect(await messageOf(readAll(blob.open()))).toContain(
            `${other}, to which the registry ${host} refers, answered`,
          );
          expect(await messageOf(push(clientOf(host, user1(host)), 'a:1'))).toContain(`${other}, to which`);
        });
      });
      expect(new Set(seen)).toEqual(new Set([undefined]));
    },
  );

  test('an upload goes on with TLS where the registry, behind a proxy, calls itself http; another host without TLS is refused', () => {
    const transport = new RegistryTransport('r.example.com');
    const at = new URL('https://r.example.com/v2/a/blobs/uploads/');
    const locationOf = (location: string): string => transport.location({ headers: { location } }, at, 'pushing').href;
    expect(locationOf('http://r.example.com/v2/a?state=1')).toBe('https://r.example.com/v2/a?state=1');
    expect(locationOf('https://storage.example.com/x')).toBe('https://storage.example.com/x');
    expect(() => locationOf('http://storage.example.com/x')).toThrow(/without TLS, which is refused/);
    expect(() => locationOf('http://')).toThrow(/with a Location that is no URL of the web/);
  });
});

describe('a push goes on', () => {
  test.each([201, 204])('where an upload is answered with %d', (status) =>
    withServer(accepting([['PATCH /v2/', reply(status)]]), async (host) => {
      expect(await push(clientOf(host), 'a:1')).toMatchObject({ uploaded: 5 });
    }),
  );

  test.each([400, 403, 405])('where taking a blob from another repository is refused with %d', (status) =>
    withServer(accepting([['POST /v2/a/blobs/uploads/?mount', reply(status)]]), async (host) => {
      const { images } = await tinyImage();
      const layer = { ...images[0]!.layers[0]!, origin: { host, repository: 'other' } };
      expect(await clientOf(host).pushBlob('a', layer)).toBe('uploaded');
    }),
  );

  test('where the registry is busy for a moment, or the connection is cut', () => {
    const failures = [503, 0];
    const flaky: Handler = (response, request) => {
      const status = failures.shift();
      if (status === undefined) reply(202, { location: '/v2/upload' })(response, request);
      else if (status === 0) request.socket.destroy();
      else reply(status, { 'retry-after': '0' })(response, request);
    };
    return withServer(accepting([['POST /v2/', flaky]]), async (host) => {
      expect(await push(clientOf(host), 'a:1')).toMatchObject({ uploaded: 5 });
      expect(failures).toEqual([]);
    });
  });

  test('but not after a longer wait than it can bear', () =>
    withServer(accepting([['POST /v2/', reply(429, { 'retry-after': '3600' })]]), async (host) => {
      expect(await messageOf(push(clientOf(host), 'a:1'))).toMatch(/with 429 .* limits how often it is asked/);
    }));
});

describe('an answer that is not as it should be is one clear error', () => {
  const digest = sha256('x');
  const descriptor = { mediaType: 'x', digest, size: 1 };
  const manifest = { config: descriptor, layers: [descriptor] };

  test.each<readonly [what: string, answer: Handler, message: RegExp]>([
    ['errors: null', reply(500, {}, '{"errors":null}'), /answered reading .* with 500 \(no reason\)/],
    ['errors that are null', reply(400, {}, '{"errors":[null, 1]}'), /with 400 \(no reason\)/],
    ['an error that is null', reply(400, {}, 'null'), /with 400 \(no reason\)/],
    ['a page of a proxy', reply(502, {}, '<html>'), /with 502 \(no reason\)/],
    ['control characters', reply(400, {}, '{"errors":[{"message":"a\\u001b[2Jb\\nc"}]}'), /\(a \[2Jb c\)/],
    ['a redirect to no URL', reply(307, { location: 'http://' }), /with a Location that is no URL of the web/],
    ['no JSON', reply(200, { 'content-type': mediaTypes.manifest }, '{'), /is not JSON/],
    ['null', json(null), /does not describe an image/],
    ['a manifest without layers', json({ ...manifest, layers: null }), /does not describe an image \(layers: /],
    ['a manifest without a config', json({ layers: [] }), /does not describe an image \(config: /],
    ['an index without manifests', json({}, mediaTypes.index), /does not describe an image \(manifests: /],
    ['a digest that is a path', json({ ...manifest, layers: [{ ...descriptor, digest: 'x/../../etc' }] }), /64 hexa/],
    ['a size that is negative', json({ ...manifest, config: { ...descriptor, size: -1 } }), /config\.size/],
    ['something else', json({}, 'application/x; charset=a'), /its media type is application\/x$/],
    ['too much', reply(200, {}, ' '.repeat(9 * 1024 * 1024)), /more than 8388608 bytes/],
  ])('%s', (_, answer, message) =>
    withServer(answers([['GET /v2/a/manifests', answer]]), async (host) => {
      const client = new Registry(host, { cacheFolder: join(folder, 'cache'), retryDelayMs: 1 });
      expect(await messageOf(registryBase(client, parseReference(`${host}/a:1`), undefined))).toMatch(message);
      await client.close();
    }),
  );

  test('a chart or a signature instead of an image', () => {
    const [config, content] = [sha256('{}'), '{}'];
    const routes: readonly (readonly [string, Handler])[] = [
      ['GET /v2/a/manifests', json({ config: { mediaType: 'x', digest: config, size: 2 }, layers: [] })],
      ['GET /v2/a/blobs', reply(200, {}, content)],
    ];
    return withServer(answers(routes), async (host) => {
      const reading = registryBase(clientOf(host), parseReference(`${host}/a:1`), undefined);
      expect(await messageOf(reading)).toMatch(/does not describe an image .* something else that registries hold/);
    });
  });

  test('more content than was said is not downloaded to its end', () =>
    withServer(answers([['GET /v2/a/blobs', reply(200, {}, 'x'.repeat(1e6))]]), async (host) => {
      const blob = clientOf(host).blob('a', { mediaType: 'x', digest, size: 10 });
      expect(await messageOf(readAll(blob.open()))).toMatch(/it is longer \(\d+ of 10 bytes\)/);
    }));
});

describe('who may not do something is told that, and not to log in again', () => {
  const tokens = (status: number): readonly (readonly [string, Handler])[] => [
    ['GET /token', status === 200 ? json({ token: '', access_token: 'some-token' }) : reply(status)],
  ];
  const asking: Handler = (response, request) => {
    const realm = `http://${request.headers.host ?? ''}/token`;
    response
      .writeHead(401, { 'www-authenticate': `Basic realm="x", Bearer realm="${realm}",service="s",scope="a b"` })
      .end(JSON.stringify({ errors: [{ code: 'UNAUTHORIZED', message: 'insufficient_scope' }] }));
  };

  test.each([
    [200, /with 401 \(UNAUTHORIZED: insufficient_scope\)\. The user whose .* may not do that, or there is no such/],
    [403, /gives no token for repository:a:pull\. The user whose .* may not do that/],
    [401, /refuses the credentials of .*Run: docker login/],
  ])('the token server answers %d', (status, message) =>
    withServer(answers([...tokens(status), ['GET /v2/', asking]]), async (host) => {
      expect(await messageOf(clientOf(host, user1(host)).manifest('a', '1'))).toMatch(message);
    }),
  );
});

describe('a token server', () => {
  const bearer = (host: string): Readonly<Record<string, string>> => ({
    'www-authenticate': `Bearer realm="http://${host}/token",service="s"`,
  });

  test('that is busy is asked again', () => {
    let asked = 0;
    const token: Handler = (response, request) => {
      asked += 1;
      if (asked === 1) reply(503, { 'retry-after': '0' })(response, request);
      else json({ token: 'some-token' })(response, request);
    };
    const manifest: Handler = (response, request) => {
      if (request.headers.authorization === 'Bearer some-token') json({})(response, request);
      else reply(401, bearer(request.headers.host ?? ''))(response, request);
    };
    return withServer(
      answers([
        ['GET /token', token],
        ['GET /v2/', manifest],
      ]),
      async (host) => {
        expect((await clientOf(host).manifest('a', '1')).descriptor.size).toBe(2);
        expect(asked).toBe(2);
      },
    );
  });

  test('whose registry repeats what was sent there shows no secret', () => {
    let sent = '';
    const token: Handler = (response, request) => {
      sent = request.headers.authorization ?? '';
      json({ token: 'some-token' })(response, request);
    };
    const repeating: Handler = (response, request) => {
      if (sent === '') reply(401, bearer(request.headers.host ?? ''))(response, request);
      else {
        const message = `${sent} ${request.headers.authorization ?? ''} ${encodeURIComponent(user.password)}`;
        reply(400, {}, JSON.stringify({ errors: [{ code: 'BAD', message }] }))(response, request);
      }
    };
    return withServer(
      answers([
        ['GET /token', token],
        ['GET /v2/', repeating],
      ]),
      async (host) => {
        const found = await messageOf(clientOf(host, user1(host)).manifest('a', '1'));
        expect(found).toContain('with 400 (BAD: Basic *** Bearer *** ***)');
      },
    );
  });
});

test('a body without end, which nobody wants, is not read to its end', () => {
  const endless: Handler = (response) => {
    response.writeHead(404);
    const timer = setInterval(() => response.write('x'.repeat(10_000)), 1);
    response.on('close', () => clearInterval(timer));
  };
  return withServer(answers([['GET /v2/', endless]]), async (host) => {
    expect(await messageOf(clientOf(host).manifest('a', '1'))).toMatch(/the registry has no/);
  });
});

describe('a damaged cache', () => {
  test('is noticed, and downloaded again', () => {
    let downloads = 0;
    const counted: Handler = (response, request) => {
      downloads += 1;
      reply(200, {}, 'content')(response, request);
    };
    return withServer(answers([['GET /v2/a/blobs', counted]]), async (host) => {
      const cacheFolder = join(folder, 'damaged');
      const digest = sha256('content');
      const read = async (): Promise<string> => {
        const client = new Registry(host, { cacheFolder });
        const content = await readAll(client.blob('a', { mediaType: 'x', digest, size: 7 }).open());
        await client.close();
        return content.toString();
      };
      expect([await read(), await read()]).toEqual(['content', 'content']);
      expect(downloads).toBe(1);
      const [file] = readdirSync(cacheFolder);
      writeFileSync(join(cacheFolder, file!), 'CONTENT');
      expect(await read()).toBe('content');
      expect(downloads).toBe(2);
      expect(readFileSync(join(cacheFolder, file!), 'utf8')).toBe('content');
    });
  });

  test('that cannot be used is named', () =>
    withServer(answers([['GET /v2/a/blobs', reply(200, {}, 'x')]]), async (host) => {
      writeFileSync(join(folder, 'file'), '');
      const client = new Registry(host, { cacheFolder: join(folder, 'file', 'cache') });
      const blob = client.blob('a', { mediaType: 'x', digest: sha256('x'), size: 1 });
      expect(await messageOf(readAll(blob.open()))).toMatch(/cannot be kept in .*file\/cache: ENOTDIR/);
      await client.close();
    }));
});

describe("Docker's configuration", () => {
  const withPassword = answers([
    [
      'GET /v2/',
      (response, request) => {
        const isUser = request.headers.authorization === `Basic ${auth(user.password)}`;
        if (isUser) json({})(response, request);
        else reply(401, { 'www-authenticate': 'Basic realm="x"' })(response, request);
      },
    ],
  ]);

  test('may have null for what is empty, and the exact name of a registry is taken first', () =>
    withServer(withPassword, async (host) => {
      const old = { auth: auth('wr0ng') };
      for (const auths of [
        { [`https://${host}/v1/`]: old, [host]: { auth: auth(user.password) } },
        { [`https://${host}/v1/`]: {}, [`http://${host}`]: { auth: auth(user.password), identitytoken: null } },
      ]) {
        const config = dockerConfig('exact', { auths, credHelpers: null, credsStore: null });
        expect((await clientOf(host, config).manifest('a', '1')).descriptor.size).toBe(2);
      }
      expect(await messageOf(clientOf(host, dockerConfig('null', { auths: null })).manifest('a', '1'))).toMatch(/none/);
      expect(await messageOf(clientOf(host, dockerConfig('nothing', null)).manifest('a', '1'))).toMatch(/none/);
    }));

  test('that is something else is an error without its content', () =>
    withServer(withPassword, async (host) => {
      const odd = dockerConfig('odd', { auths: { [host]: { auth: { s: 'wr0ng' } } } });
      expect(await messageOf(clientOf(host, odd).manifest('a', '1'))).toMatch(/is not as Docker writes it, at auths/);
      mkdirSync(join(folder, 'docker', 'config.json'), { recursive: true });
      const env = { DOCKER_CONFIG: join(folder, 'docker') };
      expect(await messageOf(clientOf(host, 'none', env).manifest('a', '1'))).toMatch(/cannot be read \(EISDIR\)/);
    }));
});

test('a proxy that is no URL is named, without its password', () => {
  const open = (value: string): unknown => new RegistryTransport('r.example.com', { env: { HTTPS_PROXY: value } });
  expect(() => open('proxy.example.com:3128')).not.toThrow();
  expect(() => open('socks5://me:s3cret@proxy')).toThrow(
    /^HTTPS_PROXY cannot be used: give the URL of a proxy with http/,
  );
  expect(() => open('http://me:s3cret%@proxy:1')).toThrow(/^HTTPS_PROXY cannot be used/);
});
