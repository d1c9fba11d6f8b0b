import type { ApiClient } from '../../../operator/client/api-client';
import { staticAccess, type ClusterAccess, type Credentials } from '../../../operator/client/cluster-access';
import { ApiError, TransportError } from '../../../operator/client/errors';
import { createApiClient, type HttpApiClientOptions } from '../../../operator/client/http-api-client';
import type { ResponseObservation } from '../../../operator/client/requester';
import { eventually } from '../support/eventually';
import { FakeApiServer, json, status } from '../support/fake-api-server';
import { CONFIG_MAPS } from '../support/fake-cluster';
import { holdTimeouts } from '../support/held-timeouts';

const OBJECT = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'b', namespace: 'a', uid: 'u', resourceVersion: '7' },
};
const REF = { namespace: 'a', name: 'b' };
const PATH = '/api/v1/namespaces/a/configmaps/b';
const MANAGER = { fieldManager: 'kindred' };

let server: FakeApiServer;
let client: ApiClient;
let seen: ResponseObservation[];

async function connect(
  options: HttpApiClientOptions = {},
  access?: (url: string) => ClusterAccess,
): Promise<ApiClient> {
  const url = await server.listen();
  client = createApiClient((access ?? staticAccess)(url), {
    onResponse: (observation) => seen.push(observation),
    random: () => 0,
    ...options,
  });
  return client;
}

beforeEach(() => {
  seen = [];
  server = new FakeApiServer((_request, response) => json(response, OBJECT));
});

afterEach(async () => {
  await client.close();
  await server.close();
});

describe('requests', () => {
  test('get, and undefined when there is none', async () => {
    await connect({ userAgent: 'kindred/1.2.3' });
    expect(await client.get(CONFIG_MAPS, REF)).toEqual(OBJECT);
    server.next((_request, response) => status(response, 404, 'NotFound'));
    expect(await client.get(CONFIG_MAPS, REF)).toBeUndefined();
    expect(server.requests[0]).toMatchObject({ method: 'GET', path: PATH, headers: { 'user-agent': 'kindred/1.2.3' } });
    expect(seen).toEqual([
      { method: 'GET', code: 200, seconds: expect.any(Number) as number, type: CONFIG_MAPS },
      { method: 'GET', code: 404, seconds: expect.any(Number) as number, type: CONFIG_MAPS },
    ]);
  });

  test('create, update, apply and patch', async () => {
    await connect();
    await client.create(CONFIG_MAPS, OBJECT, MANAGER);
    await client.update(CONFIG_MAPS, OBJECT, { ...MANAGER, dryRun: true });
    await client.apply(CONFIG_MAPS, OBJECT, { ...MANAGER, subresource: 'status' });
    await client.patch(CONFIG_MAPS, REF, [], { ...MANAGER, type: 'json' });
    expect(
      server.requests.map(({ method, path, query, headers }) => [method, path, String(query), headers['content-type']]),
    ).toEqual([
      ['POST', '/api/v1/namespaces/a/configmaps', 'fieldManager=kindred&fieldValidation=Strict', 'application/json'],
      ['PUT', PATH, 'fieldManager=kindred&fieldValidation=Strict&dryRun=All', 'application/json'],
      [
        'PATCH',
        `${PATH}/status`,
        'fieldManager=kindred&force=true&fieldValidation=Strict',
        'application/apply-patch+yaml',
      ],
      ['PATCH', PATH, 'fieldManager=kindred', 'application/json-patch+json'],
    ]);
    expect(JSON.parse(server.requests[2]!.body)).toEqual(OBJECT);
  });

  test('delete with preconditions, and false when there was nothing', async () => {
    await connect();
    expect(await client.delete(CONFIG_MAPS, REF, { uid: 'u', propagation: 'Foreground' })).toBe(true);
    expect(JSON.parse(server.requests[0]!.body)).toMatchObject({
      propagationPolicy: 'Foreground',
      preconditions: { uid: 'u' },
    });
    server.next((_request, response) => status(response, 404, 'NotFound'));
    expect(await client.delete(CONFIG_MAPS, REF)).toBe(false);
    server.next((_request, response) => status(response, 409, 'Conflict'));
    await expect(client.delete(CONFIG_MAPS, REF, { uid: 'other' })).rejects.toMatchObject({ reason: 'Conflict' });
  });

  test('list fills in what lists leave out', async () => {
    await connect();
    const items = [{ metadata: OBJECT.metadata }];
    server.next((_request, response) =>
      json(response, { metadata: { resourceVersion: '9', continue: 'more' }, items }),
    );
    const options = { namespace: 'a', limit: 1, labelSelector: 'a=b,c', metadataOnly: true };
    expect(await client.list(CONFIG_MAPS, options)).toEqual({
      items: [OBJECT],
      resourceVersion: '9',
      continueToken: 'more',
    });
    expect(server.requests[0]?.query.get('labelSelector')).toBe('a=b,c');
    expect(server.requests[0]?.headers.accept).toContain('as=PartialObjectMetadataList');
  });

  test('a server behind a path, groups, and cluster-scoped types', async () => {
    await connect({}, (url) => staticAccess(`${url}/k8s/clusters/c-1/`));
    const type = { apiVersion: 'example.com/v1', kind: 'Thing', plural: 'things', scope: 'Cluster' } as const;
    await client.get(type, { name: 'system:x' });
    expect(server.requests[0]?.path).toBe('/k8s/clusters/c-1/apis/example.com/v1/things/system%3Ax');
    await client.getPath('/version?timeout=1s');
    expect(server.requests[1]?.path).toBe('/k8s/clusters/c-1/version');
  });

  test.each(['', '.', '..'])('a name that would lead elsewhere (%j) is refused', async (name) => {
    await connect();
    await expect(client.get(CONFIG_MAPS, { namespace: 'a', name })).rejects.toThrow('is no name');
    await expect(client.get(CONFIG_MAPS, { name: 'b' })).rejects.toThrow('the namespace is missing');
    expect(server.requests).toEqual([]);
  });

  test("an error holds the server's words, reason, causes and the request", async () => {
    await connect();
    const details = { causes: [{ reason: 'FieldValueInvalid', message: 'bad', field: 'spec.x' }] };
    server.next((_request, response) => status(response, 422, 'Invalid', { message: 'spec.x: bad', details }));
    const error = await client.create(CONFIG_MAPS, OBJECT, MANAGER).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ message: 'spec.x: bad', code: 422, request: 'POST /api/v1/namespaces/a/configmaps' });
    expect((error as ApiError).hasCause('FieldValueInvalid')).toBe(true);
  });

  test("a proxy's page is quoted", async () => {
    await connect();
    server.next((_request, response) => void response.writeHead(502).end('<h1>Bad gateway</h1>'));
    await expect(client.create(CONFIG_MAPS, OBJECT, MANAGER)).rejects.toThrow('answered 502: <h1>Bad gateway</h1>');
    server.next((_request, response) => void response.end('<h1>Login: secret</h1>'));
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toThrow(/22 characters, is not JSON; is a proxy in between/);
  });
});

describe('patience', () => {
  test.each(['GET', 'POST'])('429 and 503 are repeated as Retry-After says (%s)', async (method) => {
    await connect();
    server.next(
      (_request, response) => status(response, 429, 'TooManyRequests', { details: { retryAfterSeconds: 0.02 } }),
      (_request, response) => status(response, 503, 'ServiceUnavailable', { headers: { 'retry-after': '0' } }),
    );
    const answer = method === 'GET' ? client.get(CONFIG_MAPS, REF) : client.create(CONFIG_MAPS, OBJECT, MANAGER);
    expect(await answer).toEqual(OBJECT);
    expect(seen.map(({ code }) => code)).toEqual([429, 503, 200]);
  });

  test('a 500 with Retry-After is repeated only where that is safe', async () => {
    await connect();
    const busy = (): unknown =>
      server.next((_request, response) => status(response, 500, 'ServerTimeout', { headers: { 'retry-after': '0' } }));
    busy();
    expect(await client.apply(CONFIG_MAPS, OBJECT, MANAGER)).toEqual(OBJECT);
    busy();
    await expect(client.create(CONFIG_MAPS, OBJECT, MANAGER)).rejects.toMatchObject({ code: 500 });
  });

  test('patience ends: by number, and by time', async () => {
    server = new FakeApiServer((_request, response) =>
      status(response, 429, 'TooManyRequests', { headers: { 'retry-after': '0' } }),
    );
    await connect();
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toMatchObject({ code: 429, status: { retryAfterSeconds: 0 } });
    expect(server.requests).toHaveLength(5);
    server.next((_request, response) => status(response, 429, 'TooManyRequests', { headers: { 'retry-after': '31' } }));
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toMatchObject({ status: { retryAfterSeconds: 31 } });
    expect(server.requests).toHaveLength(6);
  });

  test('waiting ends when the caller gives up', async () => {
    await connect();
    server.next((_request, response) => status(response, 429, 'TooManyRequests', { headers: { 'retry-after': '20' } }));
    const given = new AbortController();
    const answer = client.get(CONFIG_MAPS, REF, { signal: given.signal });
    await eventually(() => expect(seen).toHaveLength(1));
    given.abort(new Error('given up'));
    await expect(answer).rejects.toThrow('given up');
  });
});

describe('credentials', () => {
  function rotating(tokens: string[]): { access: (url: string) => ClusterAccess; asked: boolean[] } {
    const asked: boolean[] = [];
    const access = (url: string): ClusterAccess => ({
      server: url,
      credentials: (rejected) => {
        asked.push(rejected);
        return Promise.resolve({
          headers: { authorization: `Bearer ${tokens[Math.min(asked.length, tokens.length) - 1]}` },
        });
      },
    });
    return { access, asked };
  }

  beforeEach(() => {
    server = new FakeApiServer(({ headers }, response) =>
      headers.authorization === 'Bearer new' ? json(response, OBJECT) : status(response, 401, 'Unauthorized'),
    );
  });

  test('a 401 leads to one renewal and one repetition', async () => {
    const { access, asked } = rotating(['old', 'new']);
    await connect({}, access);
    expect(await client.create(CONFIG_MAPS, OBJECT, MANAGER)).toEqual(OBJECT);
    expect(await client.get(CONFIG_MAPS, REF)).toEqual(OBJECT);
    expect(asked).toEqual([false, true]);
    expect(server.requests).toHaveLength(3);
  });

  test('many requests with one old token renew it once', async () => {
    const { access, asked } = rotating(['old', 'new']);
    await connect({}, access);
    await Promise.all(Array.from({ length: 8 }, () => client.get(CONFIG_MAPS, REF)));
    expect(asked).toEqual([false, true]);
  });

  test('a token that stays bad ends in the 401, without the token in it', async () => {
    const { access } = rotating(['s3cret']);
    await connect({}, access);
    const error: unknown = await client.get(CONFIG_MAPS, REF).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 401 });
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('s3cret');
    expect(server.requests).toHaveLength(2);
  });

  test('credentials that cannot be had are a TransportError', async () => {
    await connect({}, (url) => ({ server: url, credentials: () => Promise.reject(new Error('the plugin failed')) }));
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toThrow(/no credentials for .*the plugin failed/);
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toThrow(TransportError);
  });

  describe('that are long in coming', () => {
    let bring: (credentials: Credentials) => void;

    beforeEach(async () => {
      const brought = new Promise<Credentials>((resolve) => (bring = resolve));
      await connect({}, (url) => ({ server: url, credentials: () => brought }));
    });

    afterEach(() => {
      jest.useRealTimers();
      bring({ headers: {} });
    });

    test.each([
      ['timeoutMs', 'none came within 0.03 s'],
      ['withinMs', 'none came within 0.03 s'],
    ])('hold a request up for no longer than its %s', async (bound, message) => {
      // What is left of the time when credentials are asked for is told in whole milliseconds.
      holdTimeouts();
      const request = client.get(CONFIG_MAPS, REF, { [bound]: 30 });
      const refused = expect(request).rejects.toThrow(message);
      await jest.advanceTimersByTimeAsync(30);
      await refused;
      await expect(request).rejects.toThrow(TransportError);
      expect(server.requests).toEqual([]);
    });

    test('hold up neither a request nor a watch that is no longer wanted', async () => {
      const given = new AbortController();
      const { signal } = given;
      const watch = client.watch(CONFIG_MAPS, { timeoutSeconds: 60, idleTimeoutMs: 60_000, signal });
      const ends = [client.get(CONFIG_MAPS, REF, { signal }), watch[Symbol.asyncIterator]().next()].map((end) =>
        expect(end).rejects.toThrow('given up'),
      );
      given.abort(new Error('given up'));
      await Promise.all(ends);
    });

    test('serve the next request when they come after all', async () => {
      await expect(client.get(CONFIG_MAPS, REF, { timeoutMs: 20 })).rejects.toThrow('none came');
      bring({ headers: { authorization: 'Bearer new' } });
      expect(await client.get(CONFIG_MAPS, REF)).toEqual(OBJECT);
    });
  });
});
