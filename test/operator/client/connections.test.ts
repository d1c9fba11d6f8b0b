import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient } from '../../../operator/src/client/api-client';
import type { Credentials } from '../../../operator/src/client/cluster-access';
import { staticAccess } from '../../../operator/src/client/cluster-access';
import { TransportError } from '../../../operator/src/client/errors';
import type { HttpApiClientOptions } from '../../../operator/src/client/http-api-client';
import { createApiClient } from '../../../operator/src/client/http-api-client';
import type { ResponseObservation } from '../../../operator/src/client/requester';
import { eventually } from '../support/eventually';
import { FakeApiServer, json, status } from '../support/fake-api-server';
import { CONFIG_MAPS } from '../support/fake-cluster';

const OBJECT = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b', namespace: 'a' } };
const REF = { namespace: 'a', name: 'b' };
const PATH = '/api/v1/namespaces/a/configmaps/b';
const MANAGER = { fieldManager: 'kindred' };

let server: FakeApiServer;
let client: ApiClient;
let seen: ResponseObservation[];

async function connect(options: HttpApiClientOptions = {}): Promise<void> {
  client = createApiClient(staticAccess(await server.listen()), {
    onResponse: (observation) => seen.push(observation),
    ...options,
  });
}

beforeEach(() => {
  seen = [];
  server = new FakeApiServer((_request, response) => json(response, OBJECT));
});

afterEach(async () => {
  await client.close();
  await server.close();
});

describe('broken connections', () => {
  const reset = (): unknown => server.next((_request, response) => void response.socket?.resetAndDestroy());

  test('a reset before any answer is repeated once where that is safe', async () => {
    await connect();
    reset();
    expect(await client.get(CONFIG_MAPS, REF)).toEqual(OBJECT);
    reset();
    expect(await client.delete(CONFIG_MAPS, REF, { uid: 'u' })).toBe(true);
    reset();
    await expect(client.create(CONFIG_MAPS, OBJECT, MANAGER)).rejects.toThrow(TransportError);
    reset();
    await expect(client.delete(CONFIG_MAPS, REF)).rejects.toThrow(TransportError);
    reset();
    reset();
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toThrow(`GET ${PATH} at ${server.url} failed`);
    expect(server.requests).toHaveLength(8);
  });

  test('a cut inside the answer is not repeated', async () => {
    await connect();
    server.next((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{', () => response.socket?.resetAndDestroy());
    });
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toThrow(TransportError);
    expect(server.requests).toHaveLength(1);
  });

  test('no answer in time, neither headers nor the rest of the body', async () => {
    await connect({ timeoutMs: 50 });
    server.next(
      () => undefined,
      (_request, response) => void response.writeHead(200).write('{'),
    );
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toThrow('no whole answer within 0.05 s');
    await expect(client.get(CONFIG_MAPS, REF, { timeoutMs: 60 })).rejects.toThrow('no whole answer within 0.06 s');
    expect(await client.get(CONFIG_MAPS, REF)).toEqual(OBJECT);
    expect(seen.map(({ code }) => code)).toEqual(['<error>', '<error>', 200]);
  });

  test('nobody listens: the error says what to look at', async () => {
    client = createApiClient(staticAccess('http://127.0.0.1:1'));
    await server.listen();
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toThrow(/ECONNREFUSED.*is the API server running/);
  });

  test('waiting for a connection is bounded too', async () => {
    await connect({ maxConnections: 1 });
    server.next(() => undefined);
    const busy = client.get(CONFIG_MAPS, REF, { timeoutMs: 300 });
    const waiting = client.get(CONFIG_MAPS, REF, { timeoutMs: 30 });
    await expect(waiting).rejects.toThrow('no connection within 0.03 s');
    await expect(busy).rejects.toThrow('no whole answer');
    expect(server.requests).toHaveLength(1);
  });

  test('a request may be bounded in all: the wait for a connection, its answer, and repetitions', async () => {
    await connect({ maxConnections: 1 });
    server.next(() => undefined);
    const busy = client.get(CONFIG_MAPS, REF, { timeoutMs: 100 });
    const waiting = client.get(CONFIG_MAPS, REF, { withinMs: 600 });
    server.next(() => undefined);
    await expect(busy).rejects.toThrow('no whole answer within 0.1 s');
    await expect(waiting).rejects.toThrow('no whole answer within 0.5 s');
    server.next((_request, response) => status(response, 429, 'TooManyRequests', { headers: { 'retry-after': '2' } }));
    await expect(client.get(CONFIG_MAPS, REF, { withinMs: 1500 })).rejects.toMatchObject({ code: 429 });
    expect(server.requests).toHaveLength(3);
  });

  test('a request whose time is over before it can be sent is not sent', async () => {
    const credentials = (): Promise<Credentials> => delay(30, { headers: {} });
    client = createApiClient({ server: await server.listen(), credentials });
    await expect(client.create(CONFIG_MAPS, OBJECT, { ...MANAGER, withinMs: 10 })).rejects.toThrow(
      'none came within 0.01 s',
    );
    expect(server.requests).toEqual([]);
  });

  test('the signal of the caller frees the connection', async () => {
    await connect();
    server.next(() => undefined);
    const given = new AbortController();
    const answer = client.get(CONFIG_MAPS, REF, { signal: given.signal });
    await eventually(() => expect(server.open).toBe(1));
    given.abort(new Error('given up'));
    await expect(answer).rejects.toThrow('given up');
    await eventually(() => expect(server.open).toBe(0));
    await expect(client.get(CONFIG_MAPS, REF, { signal: given.signal })).rejects.toThrow('given up');
    expect(server.requests).toHaveLength(1);
  });

  test('closing ends what is under way, and everything after', async () => {
    await connect();
    server.next(() => undefined);
    const answer = client.get(CONFIG_MAPS, REF);
    await eventually(() => expect(server.open).toBe(1));
    const ended = expect(answer).rejects.toThrow('the client was closed');
    await client.close();
    await ended;
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toThrow('the client was closed');
  });
});
