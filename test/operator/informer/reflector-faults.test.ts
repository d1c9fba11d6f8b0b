import type * as TimersPromises from 'node:timers/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError, TransportError } from '../../../operator/client/errors';
import { eventually } from '../support/eventually';
import { status } from '../support/fake-api-server';
import { bookmarkAt } from '../support/fake-cluster';
import { holdTimeouts } from '../support/held-timeouts';
import { seed, withReflector } from './reflector-harness';

jest.mock('node:timers/promises', () => {
  const actual = jest.requireActual<typeof TimersPromises>('node:timers/promises');
  return { ...actual, setTimeout: jest.fn(actual.setTimeout) };
});

/** How long the reflector has waited after each failure, in milliseconds; the tests' own delays have no signal. */
const waits = (): readonly number[] =>
  jest.mocked(delay).mock.calls.flatMap(([ms = 0, , options]) => (options?.signal === undefined ? [] : [ms]));

beforeEach(() => void jest.mocked(delay).mockClear());
afterEach(() => void jest.useRealTimers());

describe('a watch that breaks', () => {
  test('a reset in mid-stream resumes at the last version, without a new list', () =>
    withReflector(
      async ({ cluster, reflector, caughtUp, errors }) => {
        await reflector.synced();
        cluster.put('a');
        await caughtUp();
        cluster.server.cut();
        // At once: the next watch must not be open yet.
        cluster.put('b');
        cluster.remove('seed-0');
        await caughtUp();
        expect(cluster.server.requests).toHaveLength(2);
        expect(cluster.server.requests[1]?.query.get('resourceVersion')).toBe('104');
        expect(errors).toEqual([expect.any(TransportError)]);
        expect(reflector.state()).toMatchObject({ synced: true, watching: true, lists: 1 });
        expect(reflector.state().lastError).toBeUndefined();
      },
      { prepare: seed(3) },
    ));

  test('a cut inside an object drops the half and resumes', () =>
    withReflector(async ({ cluster, reflector, caughtUp }) => {
      await reflector.synced();
      await eventually(() => expect(cluster.openWatches).toBe(1));
      cluster.sendBytes(Buffer.from('{"type":"ADDED","object":{"metadata":{"name":"half'));
      cluster.silence();
      cluster.put('whole');
      cluster.server.cut();
      await caughtUp();
      expect(cluster.server.requests).toHaveLength(2);
    }));

  test('a planned end inside an object is a cut as well', () =>
    withReflector(async ({ cluster, reflector, caughtUp, errors }) => {
      await reflector.synced();
      await eventually(() => expect(cluster.openWatches).toBe(1));
      cluster.sendBytes(Buffer.from('{"type":"ADDED","object":{"metadata":{"name":"half'));
      cluster.end();
      await eventually(() => expect(cluster.watches).toHaveLength(2));
      cluster.put('whole');
      await caughtUp();
      expect(String(errors[0])).toContain('bytes into an event');
    }));

  test('chunks cut inside UTF-8 characters arrive whole', () =>
    withReflector(async ({ cluster, reflector, cache }) => {
      await reflector.synced();
      await eventually(() => expect(cluster.openWatches).toBe(1));
      const text = '€ 🦊 ß';
      const object = cluster.put('utf');
      const metadata = { ...object.metadata, resourceVersion: '900' };
      const bytes = Buffer.from(
        `${JSON.stringify({ type: 'MODIFIED', object: { ...object, metadata, data: { text } } })}\n`,
      );
      for (const byte of bytes) {
        cluster.sendBytes(Buffer.from([byte]));
        await new Promise(setImmediate);
      }
      await eventually(() =>
        expect(cache.get({ namespace: 'default', name: 'utf' })?.object['data']).toEqual({ text }),
      );
    }));

  test('after silence past the idle time the watch is made anew, which is no failure', () => {
    holdTimeouts();
    return withReflector(
      async ({ cluster, reflector, caughtUp, errors }) => {
        await reflector.synced();
        await eventually(() => expect(cluster.openWatches).toBe(1));
        cluster.silence();
        cluster.put('swallowed');
        jest.advanceTimersByTime(100);
        await caughtUp();
        expect(errors).toEqual([]);
        expect(reflector.state().watching).toBe(true);
        expect(cluster.lists).toHaveLength(1);
        expect(cluster.server.requests).toHaveLength(2);
      },
      { idleTimeoutMs: 100 },
    );
  });

  test('a slow but living stream is not idle', () => {
    holdTimeouts();
    return withReflector(
      async ({ cluster, reflector, caughtUp, errors }) => {
        await reflector.synced();
        await eventually(() => expect(cluster.openWatches).toBe(1));
        for (let index = 0; index < 8; index++) {
          jest.advanceTimersByTime(299);
          cluster.put(`slow-${index}`);
          await caughtUp();
        }
        expect(errors).toEqual([]);
        expect(cluster.server.requests).toHaveLength(1);
      },
      { idleTimeoutMs: 300 },
    );
  });
});

describe('an expired version', () => {
  test.each([false, true])('leads to a new list (told in the stream: %s)', (inStream) =>
    withReflector(
      async ({ cluster, reflector, caughtUp, events }) => {
        await reflector.synced();
        await eventually(() => expect(cluster.openWatches).toBe(1));
        cluster.expiresInStream = inStream;
        cluster.silence();
        cluster.remove('seed-0');
        cluster.put('seed-1', { changed: 'yes' });
        cluster.put('new');
        cluster.compact();
        events.length = 0;
        cluster.server.cut();
        await caughtUp();
        expect(events.map(({ type, object }) => `${type} ${object.object.metadata.name}`).sort()).toEqual([
          'added new',
          'deleted seed-0',
          'updated seed-1',
        ]);
        expect(cluster.server.requests).toHaveLength(3);
        expect(reflector.state().lists).toBe(2);
      },
      { prepare: seed(3) },
    ),
  );

  test('a server that calls every version expired is not asked without pause', () =>
    withReflector(
      async ({ cluster, reflector, errors }) => {
        await reflector.synced();
        await eventually(() => expect(waits().length).toBeGreaterThan(3));
        // The first is no failure; after each of the others it waits, for at most two requests more.
        const [first = 0, ...others] = waits();
        expect(first).toBeGreaterThanOrEqual(20);
        expect(Math.min(...others)).toBeGreaterThanOrEqual(40);
        expect(Math.abs(errors.length - 1 - waits().length)).toBeLessThanOrEqual(1);
        expect(cluster.server.requests.length).toBeLessThanOrEqual(2 * (waits().length + 2));
        expect(errors[0]).toBeInstanceOf(ApiError);
      },
      {
        pagedList: true,
        backoff: { initialMs: 20, maxMs: 80 },
        prepare: (cluster) => {
          cluster.compact();
          cluster.restore(1);
          cluster.compact = () => undefined;
          cluster.answer = ({ query }, response) => {
            if (query.has('watch')) status(response, 410, 'Expired');
            else response.end('{"metadata":{"resourceVersion":"7"},"items":[]}');
          };
        },
      },
    ));
});

describe('a server in trouble', () => {
  test('429 on the first watch waits as long as it was told', () => {
    const started = Date.now();
    return withReflector(
      async ({ cluster, reflector, caughtUp }) => {
        await reflector.synced();
        expect(Date.now() - started).toBeGreaterThanOrEqual(950);
        await caughtUp();
        expect(cluster.server.requests).toHaveLength(2);
      },
      {
        prepare: (cluster) => {
          seed(2)(cluster);
          cluster.server.next((_request, response) =>
            status(response, 429, 'TooManyRequests', { headers: { 'retry-after': '1' } }),
          );
        },
      },
    );
  });

  test('500s are got over with growing delays', () =>
    withReflector(
      async ({ cluster, reflector, caughtUp, errors }) => {
        await reflector.synced();
        await caughtUp();
        expect(errors).toHaveLength(4);
        expect(cluster.server.requests).toHaveLength(5);
      },
      {
        prepare: (cluster) => {
          seed(2)(cluster);
          for (let index = 0; index < 4; index++)
            cluster.server.next((_request, response) => status(response, 500, 'InternalError'));
        },
      },
    ));

  test('401 and 403 show in the state and are tried again', () =>
    withReflector(
      async ({ reflector, caughtUp, errors }) => {
        await eventually(() => expect(reflector.state().lastError?.error).toMatchObject({ code: 403 }));
        expect(reflector.state()).toMatchObject({ synced: false, watching: false });
        await reflector.synced();
        await caughtUp();
        expect(reflector.state().lastError).toBeUndefined();
        expect(errors.map((error) => (error as ApiError).code)).toEqual([401, 403]);
      },
      {
        backoff: { initialMs: 50, maxMs: 50 },
        prepare: (cluster) => {
          seed(2)(cluster);
          cluster.server.next(
            (_request, response) => status(response, 401, 'Unauthorized'),
            (_request, response) => status(response, 401, 'Unauthorized'),
            (_request, response) => status(response, 403, 'Forbidden'),
          );
        },
      },
    ));

  test('a watch that ends at once again and again does not spin', () =>
    withReflector(
      async ({ cluster, reflector, errors, caughtUp }) => {
        await reflector.synced();
        await eventually(() => expect(waits().length).toBeGreaterThan(4));
        const [first = 0, second = 0, third = 0, ...others] = waits();
        expect(first).toBeGreaterThanOrEqual(10);
        expect(second).toBeGreaterThanOrEqual(20);
        expect(third).toBeGreaterThanOrEqual(40);
        expect(Math.min(...others)).toBeGreaterThanOrEqual(50);
        expect(cluster.server.requests.length).toBeLessThanOrEqual(waits().length + 1);
        expect(String(errors[0])).toContain('ended the watch after');
        await caughtUp();
      },
      {
        minWatchMs: 1000,
        backoff: { initialMs: 20, maxMs: 100 },
        prepare: (cluster) => {
          seed(1)(cluster);
          const answer = cluster.answer.bind(cluster);
          cluster.answer = (request, response) => {
            answer(request, response);
            response.end();
          };
        },
      },
    ));

  test('a watch that lived, if silently, ends the run of failures', () => {
    holdTimeouts();
    return withReflector(
      async ({ cluster, client, reflector, errors }) => {
        await reflector.synced();
        const answer = cluster.answer.bind(cluster);
        let refusals = 6;
        cluster.answer = (request, response) => {
          if (refusals-- > 0) response.socket?.destroy();
          else answer(request, response);
        };
        let opened = 0;
        const watch = client.watch.bind(client);
        client.watch = (type, options) => {
          const onOpen = (): void => {
            options.onOpen?.();
            opened += 1;
          };
          return watch(type, { ...options, onOpen });
        };
        await eventually(() => expect(cluster.openWatches).toBe(1));
        cluster.end();
        await eventually(() => expect(errors).toHaveLength(6));
        // Some silent watches later the server starts anew, and does not know the version reached.
        for (let silent = 1; silent <= 4; silent++) {
          await eventually(() => expect(opened).toBe(silent));
          jest.advanceTimersByTime(100);
        }
        await eventually(() => expect(opened).toBe(5));
        expect(errors).toHaveLength(6);
        cluster.tick();
        cluster.compact();
        const before = waits().length;
        jest.advanceTimersByTime(100);
        await eventually(() => expect(errors).toHaveLength(7));
        await eventually(() => expect(reflector.state().lists).toBe(2));
        // The first 410 is no failure; the seventh failure in a row would wait for more than a second.
        expect(waits()).toHaveLength(before);
      },
      { idleTimeoutMs: 100, stableAfterMs: 10, backoff: { initialMs: 20, maxMs: 30_000, random: () => 0.99 } },
    );
  });

  test('a history that was set back is noticed by a bookmark and listed anew', () =>
    withReflector(
      async ({ cluster, reflector, caughtUp, cache }) => {
        await reflector.synced();
        await eventually(() => expect(cluster.openWatches).toBe(1));
        cluster.silence();
        cluster.restore(50);
        cluster.remove('seed-0');
        cluster.put('seed-1');
        cluster.server.cut();
        await eventually(() => expect(cluster.watches).toHaveLength(2));
        await eventually(() => expect(cluster.openWatches).toBe(1));
        // The API server would send none, but others that speak its protocol may.
        cluster.send(bookmarkAt(52));
        await caughtUp();
        expect(cache.resourceVersion).toBe('52');
        expect(reflector.state().lists).toBe(2);
      },
      { prepare: seed(2) },
    ));
});
