import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import type { ApiClient } from '../../../operator/client/api-client';
import { staticAccess, type Credentials } from '../../../operator/client/cluster-access';
import { TransportError } from '../../../operator/client/errors';
import { createApiClient, type HttpApiClientOptions } from '../../../operator/client/http-api-client';
import type { ResponseObservation } from '../../../operator/client/requester';
import { eventually } from '../support/eventually';
import { FakeApiServer, json, status } from '../support/fake-api-server';
import { CONFIG_MAPS } from '../support/fake-cluster';
import { holdTimeouts } from '../support/held-timeouts';

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
  jest.useRealTimers();
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

  test('an answer that is too long is cut off', async () => {
    await connect({ maxResponseBytes: 1000 });
    expect(await client.get(CONFIG_MAPS, REF)).toEqual(OBJECT);
    server.next((_request, response) => json(response, { ...OBJECT, data: { text: 'x'.repeat(1_000_000) } }));
    await expect(client.get(CONFIG_MAPS, REF)).rejects.toThrow(TransportError);
    expect(await client.get(CONFIG_MAPS, REF)).toEqual(OBJECT);
    expect(server.requests).toHaveLength(3);
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
    let begun = false;
    server.next(
      () => undefined,
      (_request, response) => void response.writeHead(200).write('{', () => (begun = true)),
    );
    holdTimeouts();
    const none = expect(client.get(CONFIG_MAPS, REF)).rejects.toThrow('no whole answer within 0.05 s');
    await eventually(() => expect(server.requests).toHaveLength(1));
    jest.advanceTimersByTime(50);
    await none;
    const half = client.get(CONFIG_MAPS, REF, { timeoutMs: 60 });
    const cut = expect(half).rejects.toThrow('no whole answer within 0.06 s');
    await eventually(() => expect(begun).toBe(true));
    jest.advanceTimersByTime(60);
    await cut;
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
    holdTimeouts();
    const busy = expect(client.get(CONFIG_MAPS, REF, { timeoutMs: 300 })).rejects.toThrow('no whole answer');
    await eventually(() => expect(server.requests).toHaveLength(1));
    const waiting = client.get(CONFIG_MAPS, REF, { timeoutMs: 30 });
    const gaveUp = expect(waiting).rejects.toThrow('no connection within 0.03 s');
    await turn();
    jest.advanceTimersByTime(30);
    await gaveUp;
    jest.advanceTimersByTime(270);
    await busy;
    expect(server.requests).toHaveLength(1);
  });

  test('a request may be bounded in all: the wait for a connection, its answer, and repetitions', async () => {
    await connect({ maxConnections: 1 });
    server.next(() => undefined);
    holdTimeouts();
    const busy = client.get(CONFIG_MAPS, REF, { timeoutMs: 100 });
    const given = expect(busy).rejects.toThrow('no whole answer within 0.1 s');
    await eventually(() => expect(server.requests).toHaveLength(1));
    const waiting = client.get(CONFIG_MAPS, REF, { withinMs: 599 });
    const late = expect(waiting).rejects.toThrow('no whole answer within 0.5 s');
    await turn();
    server.next(() => undefined);
    jest.advanceTimersByTime(100);
    await given;
    await eventually(() => expect(server.requests).toHaveLength(2));
    jest.advanceTimersByTime(400);
    await late;
    server.next((_request, response) => status(response, 429, 'TooManyRequests', { headers: { 'retry-after': '2' } }));
    await expect(client.get(CONFIG_MAPS, REF, { withinMs: 1500 })).rejects.toMatchObject({ code: 429 });
    expect(server.requests).toHaveLength(3);
  });

  test('a request whose time is over before it can be sent is not sent', async () => {
    const credentials = (): Promise<Credentials> => delay(30, { headers: {} });
    client = createApiClient({ server: await server.listen(), credentials });
    // What is left of the 10 ms when credentials are asked for is told in whole ones.
    holdTimeouts();
    const created = client.create(CONFIG_MAPS, OBJECT, { ...MANAGER, withinMs: 10 });
    const refused = expect(created).rejects.toThrow('none came within 0.01 s');
    await jest.advanceTimersByTimeAsync(10);
    await refused;
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
