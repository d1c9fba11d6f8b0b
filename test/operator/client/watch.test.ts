import type { ApiClient, WatchEvent } from '../../../operator/client/api-client';
import { ByteStream } from '../../../operator/client/watch-stream';
import { staticAccess } from '../../../operator/client/cluster-access';
import { TransportError } from '../../../operator/client/errors';
import { createApiClient, type HttpApiClientOptions } from '../../../operator/client/http-api-client';
import { eventually } from '../support/eventually';
import { FakeApiServer, json, status } from '../support/fake-api-server';
import { CONFIG_MAPS } from '../support/fake-cluster';
import { holdTimeouts } from '../support/held-timeouts';

const OBJECT = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b', namespace: 'a' } };
const REF = { namespace: 'a', name: 'b' };

/** For watches whose end is not silence. */
const idleTimeoutMs = 60_000;

let server: FakeApiServer;
let client: ApiClient;

async function connect(options: HttpApiClientOptions = {}): Promise<void> {
  client = createApiClient(staticAccess(await server.listen()), options);
}

beforeEach(() => {
  server = new FakeApiServer((_request, response) => json(response, OBJECT));
});

afterEach(async () => {
  jest.useRealTimers();
  await client.close();
  await server.close();
});

/** All events of a watch, to its end; they are in `events` as they come. */
async function collect(
  from: ApiClient,
  options: { readonly signal?: AbortSignal; readonly idleTimeoutMs?: number } = {},
  events: WatchEvent[] = [],
): Promise<WatchEvent[]> {
  const all = { timeoutSeconds: 300, signal: new AbortController().signal, idleTimeoutMs, ...options };
  for await (const event of from.watch(CONFIG_MAPS, all)) events.push(event);
  return events;
}

describe('watches', () => {
  const line = (type: string, name: string): string => `${JSON.stringify({ type, object: { metadata: { name } } })}\n`;

  test('ask for bookmarks, and for the initial events where wanted', async () => {
    await connect();
    server.next((_request, response) => void response.end(line('ADDED', 'x')));
    const signal = new AbortController().signal;
    let opened = 0;
    const options = { timeoutSeconds: 5, signal, idleTimeoutMs, sendInitialEvents: true, onOpen: () => opened++ };
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
    for await (const event of client.watch(CONFIG_MAPS, { timeoutSeconds: 5, signal, idleTimeoutMs })) {
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
      const events: WatchEvent[] = [];
      const ended = expect(collect(client, { signal: given.signal }, events)).rejects.toThrow('given up');
      await eventually(() => expect([server.open, events.length]).toEqual([1, round]));
      given.abort(new Error('given up'));
      await ended;
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
    holdTimeouts();
    for (let round = 0; round < 2; round++) {
      const events: WatchEvent[] = [];
      const watch = collect(client, { idleTimeoutMs: 50 }, events);
      const ended = expect(watch).rejects.toThrow(/nothing arrived for 0.05 s/);
      await eventually(() => expect([server.open, events.length]).toEqual([1, round]));
      jest.advanceTimersByTime(50);
      await ended;
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
    const data = jest.spyOn(ByteStream.prototype, 'onResponseData');
    holdTimeouts();
    const signal = new AbortController().signal;
    let count = 0;
    for await (const event of client.watch(CONFIG_MAPS, { timeoutSeconds: 5, signal, idleTimeoutMs: 150 })) {
      expect(event.object.metadata.name).toBe(`o${count++}`);
      if (count % 50 !== 0 || count === 200) continue;
      await eventually(() => expect(data.mock.lastCall?.[0].paused).toBe(true));
      jest.advanceTimersByTime(250);
    }
    expect(count).toBe(200);
    data.mockRestore();
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
    const skipOwnEcho = (version: string): boolean => offered.push(version) > 0 && version < '4';
    const options = { timeoutSeconds: 5, signal: new AbortController().signal, idleTimeoutMs, skipOwnEcho };
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
    const watches = Array.from({ length: 5 }, () => collect(client, { signal: given.signal }).catch(() => undefined));
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
