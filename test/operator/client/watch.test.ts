import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient, WatchEvent } from '../../../operator/src/client/api-client';
import { staticAccess } from '../../../operator/src/client/cluster-access';
import { TransportError } from '../../../operator/src/client/errors';
import type { HttpApiClientOptions } from '../../../operator/src/client/http-api-client';
import { createApiClient } from '../../../operator/src/client/http-api-client';
import { eventually } from '../support/eventually';
import { FakeApiServer, json, status } from '../support/fake-api-server';
import { CONFIG_MAPS } from '../support/fake-cluster';

const OBJECT = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b', namespace: 'a' } };
const REF = { namespace: 'a', name: 'b' };

let server: FakeApiServer;
let client: ApiClient;

async function connect(options: HttpApiClientOptions = {}): Promise<void> {
  client = createApiClient(staticAccess(await server.listen()), options);
}

beforeEach(() => {
  server = new FakeApiServer((_request, response) => json(response, OBJECT));
});

afterEach(async () => {
  await client.close();
  await server.close();
});

async function collect(
  from: ApiClient,
  signal = new AbortController().signal,
  idleTimeoutMs = 1000,
): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  for await (const event of from.watch(CONFIG_MAPS, { timeoutSeconds: 300, signal, idleTimeoutMs })) events.push(event);
  return events;
}

describe('watches', () => {
  const line = (type: string, name: string): string => `${JSON.stringify({ type, object: { metadata: { name } } })}\n`;

  test('ask for bookmarks, and for the initial events where wanted', async () => {
    await connect();
    server.next((_request, response) => void response.end(line('ADDED', 'x')));
    const signal = new AbortController().signal;
    let opened = 0;
    const options = { timeoutSeconds: 5, signal, idleTimeoutMs: 1000, sendInitialEvents: true, onOpen: () => opened++ };
    for await (const { type } of client.watch(CONFIG_MAPS, options)) expect([type, opened]).toEqual(['ADDED', 1]);
    expect(Object.fromEntries(server.requests[0]!.query)).toEqual({
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: '5',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
    });
  });

  test('leaving the loop early closes the connection', async () => {
    await connect();
    server.next((_request, response) => void response.write(line('ADDED', 'a') + line('ADDED', 'b')));
    const signal = new AbortController().signal;
    for await (const event of client.watch(CONFIG_MAPS, { timeoutSeconds: 5, signal, idleTimeoutMs: 1000 })) {
      expect(event.object.metadata.name).toBe('a');
      break;
    }
    await eventually(() => expect(server.open).toBe(0));
  });

  test('aborting closes the connection, before the headers and after', async () => {
    await connect();
    server.next(
      () => undefined,
      (_request, response) => void response.write(line('ADDED', 'a')),
    );
    for (let round = 0; round < 2; round++) {
      const given = new AbortController();
      const events = collect(client, given.signal);
      await eventually(() => expect(server.open).toBe(1));
      await delay(20);
      given.abort(new Error('given up'));
      await expect(events).rejects.toThrow('given up');
      await eventually(() => expect(server.open).toBe(0));
    }
  });

  test('an error inside the stream and one before it look the same', async () => {
    await connect();
    const expired = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' };
    server.next(
      (_request, response) => void response.end(`${JSON.stringify({ type: 'ERROR', object: expired })}\n`),
      (_request, response) => json(response, expired, 410),
    );
    for (let round = 0; round < 2; round++) {
      await expect(collect(client)).rejects.toMatchObject({
        name: 'ApiError',
        code: 410,
        reason: 'Expired',
        message: 'too old',
      });
    }
  });

  test('silence, before the headers and after, is a TransportError', async () => {
    await connect();
    server.next(
      () => undefined,
      (_request, response) => void response.write(line('ADDED', 'a')),
    );
    for (let round = 0; round < 2; round++) {
      const events = collect(client, undefined, 50);
      await expect(events).rejects.toThrow(/nothing arrived for 0.05 s/);
      await eventually(() => expect(server.open).toBe(0));
    }
  });

  test.each(['nonsense', '{"type":"NEW","object":{}}', '{"type":"ADDED"}', '[]'])('%s is no event', async (text) => {
    await connect();
    server.next((_request, response) => void response.end(`${text}\n`));
    await expect(collect(client)).rejects.toThrow(TransportError);
  });

  test('a reader that is slow slows the server down and loses nothing', async () => {
    await connect();
    const big = 'x'.repeat(100_000);
    server.next(async (_request, response) => {
      for (let index = 0; index < 200; index++) {
        const event = { type: 'ADDED', object: { metadata: { name: `o${index}` }, big } };
        if (!response.write(`${JSON.stringify(event)}\n`))
          await new Promise((resolve) => response.once('drain', resolve));
      }
      response.end();
    });
    const signal = new AbortController().signal;
    let count = 0;
    for await (const event of client.watch(CONFIG_MAPS, { timeoutSeconds: 5, signal, idleTimeoutMs: 150 })) {
      expect(event.object.metadata.name).toBe(`o${count++}`);
      if (count % 50 === 0) await delay(250);
    }
    expect(count).toBe(200);
  });

  test('a change is taken by its version alone where that is all there is to know', async () => {
    await connect();
    const told = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;
    const at = (resourceVersion: string, more = {}): object => ({ ...more, metadata: { name: 'a', resourceVersion } });
    server.next(
      (_request, response) =>
        void response.end(
          [
            told('ADDED', at('1')),
            told('MODIFIED', at('2', { data: { text: '"resourceVersion":"9"' } })),
            // Which of the two is the object's own, only the parser knows.
            told('MODIFIED', at('3', { involved: { resourceVersion: '1' } })),
            told('MODIFIED', at('4')),
            told('DELETED', at('2')),
            told('BOOKMARK', at('2')),
            told('ADDED', { metadata: { name: 'without' } }),
          ].join(''),
        ),
    );
    const offered: string[] = [];
    const takeEcho = (version: string): boolean => offered.push(version) > 0 && version < '4';
    const options = { timeoutSeconds: 5, signal: new AbortController().signal, idleTimeoutMs: 1000, takeEcho };
    const seen: unknown[] = [];
    for await (const { type, object } of client.watch(CONFIG_MAPS, options))
      seen.push([type, object.metadata.resourceVersion]);
    expect(offered).toEqual(['1', '2', '4']);
    expect(seen).toEqual([
      ['MODIFIED', '3'],
      ['MODIFIED', '4'],
      ['DELETED', '2'],
      ['BOOKMARK', '2'],
      ['ADDED', undefined],
    ]);
  });

  test('many watches take no connection from requests', async () => {
    await connect({ maxConnections: 1 });
    const given = new AbortController();
    for (let index = 0; index < 5; index++)
      server.next((_request, response) => void response.write(line('ADDED', 'a')));
    const watches = Array.from({ length: 5 }, () => collect(client, given.signal).catch(() => undefined));
    await eventually(() => expect(server.open).toBe(5));
    expect(await client.get(CONFIG_MAPS, REF)).toEqual(OBJECT);
    given.abort();
    await Promise.all(watches);
  });

  test('credentials that are refused are renewed', async () => {
    const tokens = ['old', 'new'];
    const credentials = (): Promise<{ headers: { authorization: string } }> =>
      Promise.resolve({ headers: { authorization: `Bearer ${tokens.shift()}` } });
    client = createApiClient({ server: await server.listen(), credentials });
    server.next(
      (_request, response) => status(response, 401, 'Unauthorized'),
      (_request, response) => void response.end(line('ADDED', 'a')),
    );
    expect(await collect(client)).toHaveLength(1);
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer old', 'Bearer new']);
  });
});
