import { UndecodableObjectError } from '../../../operator/informer/reflector-errors';
import { eventually } from '../support/eventually';
import { status } from '../support/fake-api-server';
import { seed, withReflector } from './reflector-harness';

describe('the list', () => {
  test('falls back to pages when streaming is refused, at once and for good', () =>
    withReflector(
      async ({ cluster, reflector, caughtUp, errors }) => {
        await reflector.synced();
        await caughtUp();
        expect(errors).toEqual([]);
        cluster.put('later');
        await caughtUp();
        // The refused one, three pages, the watch.
        await eventually(() => expect(cluster.server.requests).toHaveLength(5));
        expect(cluster.server.requests[1]?.query.get('limit')).toBe('2');
        expect(cluster.server.requests[4]?.query.get('resourceVersion')).toBe('105');
        await reflector.relist();
        expect(cluster.watches.filter(({ query }) => query.has('sendInitialEvents'))).toHaveLength(1);
      },
      {
        pageSize: 2,
        prepare: (cluster) => {
          seed(5)(cluster);
          cluster.streamingLists = false;
        },
      },
    ));

  test('falls back to pages when the server ignores what it was asked', () =>
    withReflector(
      async ({ cluster, reflector, caughtUp }) => {
        await reflector.synced();
        await caughtUp();
        await eventually(() => expect(cluster.server.requests).toHaveLength(3));
      },
      {
        prepare: (cluster) => {
          seed(2)(cluster);
          cluster.server.next((_request, response) => {
            response.writeHead(200);
            response.write('{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"101"}}}\n');
          });
        },
      },
    ));

  test('is taken in pages when the server accepts streams only to break them off, for this once', () =>
    withReflector(
      async ({ cluster, reflector, caughtUp, errors }) => {
        await reflector.synced();
        await caughtUp();
        expect(errors).toEqual([expect.objectContaining({ code: 500 }), expect.objectContaining({ code: 500 })]);
        // Two streams, the pages, the watch.
        await eventually(() => expect(cluster.server.requests).toHaveLength(4));
        expect(cluster.server.requests[2]?.query.get('limit')).toBe('500');
        cluster.breaksStreamingLists = false;
        await reflector.relist();
        expect(cluster.server.requests.at(-1)?.query.get('sendInitialEvents')).toBe('true');
      },
      {
        prepare: (cluster) => {
          seed(2)(cluster);
          cluster.breaksStreamingLists = true;
        },
      },
    ));

  test('is tried both ways in turn while the server breaks off the one and refuses the other', () =>
    withReflector(
      async ({ cluster, reflector }) => {
        await eventually(() => expect(cluster.server.requests.length).toBeGreaterThan(5));
        const streamed = cluster.server.requests.slice(0, 6).map(({ query }) => query.has('sendInitialEvents'));
        expect(streamed).toEqual([true, true, false, true, true, false]);
        cluster.breaksStreamingLists = false;
        await reflector.synced();
      },
      {
        prepare: (cluster) => {
          cluster.breaksStreamingLists = true;
          const answer = cluster.answer.bind(cluster);
          cluster.answer = (request, response) => {
            if (request.query.has('watch')) answer(request, response);
            else status(response, 500, 'InternalError');
          };
        },
      },
    ));

  test('is read again in one piece when its pages expire midway', () =>
    withReflector(
      async ({ cluster, reflector, caughtUp, errors }) => {
        await reflector.synced();
        await caughtUp();
        expect(errors).toEqual([]);
        expect(cluster.lists.map(({ query }) => query.get('limit'))).toEqual(['2', '2', null]);
      },
      {
        pagedList: true,
        pageSize: 2,
        prepare: (cluster) => {
          seed(5)(cluster);
          cluster.server.next((request, response) => {
            cluster.answer(request, response);
            cluster.compact();
            cluster.remove('seed-0');
          });
        },
      },
    ));

  test('that is cut before its end leaves the cache as it was', () =>
    withReflector(
      async ({ cluster, reflector, caughtUp, events }) => {
        await reflector.synced();
        await caughtUp();
        expect(events).toHaveLength(3);
        expect(cluster.server.requests).toHaveLength(2);
      },
      {
        prepare: (cluster) => {
          seed(3)(cluster);
          cluster.server.next((_request, response) => {
            response.writeHead(200);
            response.write(
              '{"type":"ADDED","object":{"metadata":{"name":"ghost","uid":"u","resourceVersion":"9"}}}\n',
              () => response.socket?.resetAndDestroy(),
            );
          });
        },
      },
    ));
});

test('bookmarks alone advance the version, so that a compaction costs no list', () =>
  withReflector(
    async ({ cluster, reflector, caughtUp }) => {
      await reflector.synced();
      await eventually(() => expect(cluster.openWatches).toBe(1));
      cluster.tick(500);
      cluster.bookmark();
      await eventually(() => expect(reflector.state().resourceVersion).toBe('602'));
      cluster.compact();
      cluster.end();
      await eventually(() => expect(cluster.watches).toHaveLength(2));
      expect(cluster.watches[1]?.query.get('resourceVersion')).toBe('602');
      cluster.put('after');
      await caughtUp();
      expect(reflector.state().lists).toBe(1);
    },
    { prepare: seed(2) },
  ));

test('a planned end is followed at once by the next watch, without delay or error', () =>
  withReflector(
    async ({ cluster, reflector, errors, caughtUp }) => {
      await reflector.synced();
      for (let round = 2; round < 6; round++) {
        await eventually(() => expect(cluster.openWatches).toBe(1));
        cluster.end();
        await eventually(() => expect(cluster.watches).toHaveLength(round));
        expect(reflector.state().watching).toBe(true);
      }
      cluster.put('x');
      await caughtUp();
      expect(errors).toEqual([]);
    },
    { backoff: { initialMs: 60_000 } },
  ));

test('objects that cannot be decoded are left out and reported; the others arrive', () =>
  withReflector(async ({ cluster, reflector, errors, caughtUp }) => {
    await reflector.synced();
    await eventually(() => expect(cluster.openWatches).toBe(1));
    cluster.send({ type: 'ADDED', object: { metadata: { uid: 'u', resourceVersion: '500' } } });
    cluster.send({ type: 'ADDED', object: { kind: 'ConfigMap' } });
    cluster.put('good');
    await caughtUp();
    expect(errors).toEqual([expect.any(UndecodableObjectError), expect.any(UndecodableObjectError)]);
    expect(cluster.server.requests).toHaveLength(1);
  }));

test('stopping before the first list rejects those who wait for it, and frees the connection', async () => {
  await withReflector(
    async ({ cluster, reflector }) => {
      const synced = reflector.synced();
      await eventually(() => expect(cluster.server.requests).toHaveLength(1));
      const rejected = expect(synced).rejects.toThrow('was stopped');
      await reflector.stop();
      await rejected;
      await expect(reflector.synced()).rejects.toThrow('was stopped');
      expect(() => reflector.start()).toThrow('make a new one');
    },
    { prepare: (cluster) => cluster.server.next(() => undefined) },
  );
});
