import { checkConsistency } from '../../../operator/informer/consistency-check';
import { seed, stateOf, withReflector, type Harness } from './reflector-harness';
import { eventually } from '../support/eventually';

async function watched({ cluster, reflector }: Harness): Promise<void> {
  await reflector.synced();
  await eventually(() => expect(cluster.openWatches).toBe(1));
}

test('finds nothing where nothing is missing, with one list of metadata', () =>
  withReflector(
    async (harness) => {
      await watched(harness);
      expect(await harness.reflector.checkConsistency()).toEqual({
        missed: 0,
        objects: [],
        checked: 3,
        conclusive: true,
      });
      expect(harness.cluster.server.requests.at(-1)?.headers.accept).toContain('PartialObjectMetadataList');
      expect(harness.reflector.state().lists).toBe(1);
    },
    { prepare: seed(3) },
  ));

test('counts what was missed, repairs it, and raises the events late', () =>
  withReflector(
    async (harness) => {
      const { cluster, reflector, cache, events, caughtUp } = harness;
      await watched(harness);
      cluster.silence();
      cluster.remove('seed-0');
      cluster.put('seed-1', { changed: 'yes' });
      cluster.put('new');
      events.length = 0;
      // A server that swallowed three events and then says that nothing is missing.
      cache.advance('106');
      const result = await reflector.checkConsistency();
      expect({ ...result, objects: [...result.objects].sort() }).toEqual({
        missed: 3,
        objects: ['default/new', 'default/seed-0', 'default/seed-1'],
        checked: 3,
        conclusive: true,
      });
      await caughtUp();
      expect(events.map(({ type }) => type).sort()).toEqual(['added', 'deleted', 'updated']);
      expect(await reflector.checkConsistency()).toMatchObject({ missed: 0 });
    },
    { prepare: seed(3) },
  ));

test('events that are only late are waited for, and not counted', () =>
  withReflector(
    async (harness) => {
      const { cluster, reflector } = harness;
      await watched(harness);
      cluster.hold();
      cluster.remove('seed-0');
      cluster.put('new');
      const audit = reflector.checkConsistency();
      await eventually(() => expect(cluster.server.requests).toHaveLength(2));
      // One object comes and goes again before the audit looks.
      cluster.remove('new');
      cluster.release();
      expect(await audit).toMatchObject({ missed: 0, conclusive: true });
      expect(reflector.state().lists).toBe(1);
    },
    { prepare: seed(3) },
  ));

test('what came and went before the cache took over a list of its own was not missed', () =>
  withReflector(
    async (harness) => {
      const { cluster, reflector, cache } = harness;
      await watched(harness);
      cluster.silence();
      cluster.put('brief');
      const audit = reflector.checkConsistency();
      await eventually(() => expect(cluster.server.requests).toHaveLength(2));
      cluster.remove('brief');
      await reflector.relist();
      expect(await audit).toEqual({ missed: 0, objects: ['default/brief'], checked: 2, conclusive: false });
      expect(cache.size).toBe(1);
      expect(reflector.state().lists).toBe(2);
      expect(await reflector.checkConsistency()).toMatchObject({ missed: 0, checked: 1, conclusive: true });
    },
    { prepare: seed(1), idleTimeoutMs: 60_000 },
  ));

test('a watch that does not get as far as the list proves nothing', () =>
  withReflector(
    async (harness) => {
      const { cluster, reflector, cache } = harness;
      await watched(harness);
      cluster.silence();
      cluster.put('new');
      expect(await reflector.checkConsistency({ waitMs: 30 })).toEqual({
        missed: 0,
        objects: ['default/new'],
        checked: 1,
        conclusive: false,
      });
      expect(stateOf(cache)).toEqual({});
    },
    { idleTimeoutMs: 60_000 },
  ));

test('objects that only a bookmark proves missing', () =>
  withReflector(
    async (harness) => {
      const { cluster, reflector } = harness;
      await watched(harness);
      cluster.hold();
      cluster.put('new');
      cluster.drop();
      const audit = reflector.checkConsistency();
      await eventually(() => expect(cluster.server.requests).toHaveLength(2));
      cluster.bookmark();
      expect(await audit).toMatchObject({ missed: 1, objects: ['default/new'] });
    },
    { idleTimeoutMs: 60_000 },
  ));

test('an audit ends when its caller gives up, and when the reflector stops', () =>
  withReflector(async (harness) => {
    const { cluster, reflector } = harness;
    await watched(harness);
    cluster.silence();
    cluster.put('new');
    const given = new AbortController();
    const audit = reflector.checkConsistency({ signal: given.signal });
    await eventually(() => expect(cluster.server.requests).toHaveLength(2));
    given.abort(new Error('given up'));
    await expect(audit).rejects.toThrow('given up');
    const other = reflector.checkConsistency();
    await eventually(() => expect(cluster.server.requests).toHaveLength(3));
    const ended = expect(other).rejects.toThrow('was stopped');
    await reflector.stop();
    await ended;
  }));

test('a caller that gives up waits for no new list, but hears what was missed', () =>
  withReflector(
    async (harness) => {
      const { cluster, reflector, cache } = harness;
      await watched(harness);
      cluster.silence();
      cluster.put('missed');
      // After the audit's own list the server is away.
      const answer = cluster.answer.bind(cluster);
      cluster.answer = (request, response) => {
        if (request.query.get('watch') !== 'true') answer(request, response);
        else response.socket?.destroy();
      };
      cache.advance('102');
      const given = new AbortController();
      const audit = reflector.checkConsistency({ signal: given.signal });
      await eventually(() => expect(cluster.watches.length).toBeGreaterThan(2));
      given.abort(new Error('given up'));
      expect(await audit).toMatchObject({ missed: 1, objects: ['default/missed'] });
      expect(reflector.state().lists).toBe(1);
    },
    { prepare: seed(1), idleTimeoutMs: 60_000 },
  ));

test('without a reflector it works on any cache', () =>
  withReflector(
    async (harness) => {
      await watched(harness);
      const { cache, client } = harness;
      expect(await checkConsistency({ cache, client, type: cache.type })).toMatchObject({ missed: 0, checked: 2 });
    },
    { prepare: seed(2) },
  ));

test('a list from a server that is behind the cache proves nothing, and is no reason for a new one', () =>
  withReflector(
    async (harness) => {
      const { cluster, reflector, cache, client } = harness;
      await watched(harness);
      const old = await client.list(cache.type, { limit: 500 });
      cluster.remove('seed-0');
      await eventually(() => expect(cache.size).toBe(2));
      let asked = 0;
      const behind: typeof client = {
        ...client,
        list: (type, options) => (asked++ === 0 ? Promise.resolve(old) : client.list(type, options)),
      };
      expect(await checkConsistency({ client: behind, type: cache.type, cache })).toEqual({
        missed: 0,
        objects: [],
        checked: 3,
        conclusive: false,
      });
      expect(asked).toBe(2);
      expect(reflector.state().lists).toBe(1);
    },
    { prepare: seed(3) },
  ));

describe('a history that was set back', () => {
  /** The server comes back with an older state; whoever watches on from where the cache was hears nothing. */
  async function restored(harness: Harness, revision: number, change: () => void): Promise<void> {
    const { cluster, events } = harness;
    await watched(harness);
    cluster.silence();
    cluster.restore(revision);
    change();
    cluster.server.cut();
    await eventually(() => expect(cluster.watches).toHaveLength(2));
    await eventually(() => expect(cluster.openWatches).toBe(1));
    cluster.bookmark();
    events.length = 0;
  }

  test('is noticed by an audit, and followed from then on', () =>
    withReflector(
      async (harness) => {
        const { cluster, reflector, cache, events, caughtUp, errors } = harness;
        await restored(harness, 50, () => {
          cluster.remove('seed-0');
          cluster.put('seed-1');
          cluster.put('new');
        });
        expect(errors).toHaveLength(1);
        const rollback = { known: '103', server: '53' };
        expect(await reflector.checkConsistency()).toEqual({
          missed: 0,
          objects: [],
          checked: 3,
          conclusive: true,
          rollback,
        });
        expect(stateOf(cache)).toEqual(cluster.state());
        expect(cache.resourceVersion).toBe('53');
        expect(events.map(({ type, object }) => `${type} ${object.object.metadata.name}`).sort()).toEqual([
          'added new',
          'deleted seed-0',
          'updated seed-1',
          'updated seed-2',
        ]);
        cluster.put('seed-1');
        await caughtUp();
        expect(await reflector.checkConsistency()).toMatchObject({ missed: 0, conclusive: true });
        expect(reflector.state().lists).toBe(2);
      },
      { prepare: seed(3) },
    ));

  test('is noticed as well once the versions have passed those of before, by what they cannot be', () =>
    withReflector(
      async (harness) => {
        const { cluster, reflector, cache } = harness;
        await restored(harness, 50, () => {
          cluster.put('seed-1');
          cluster.tick(100);
        });
        expect(await reflector.checkConsistency()).toMatchObject({ missed: 0, rollback: { server: '151' } });
        expect(stateOf(cache)).toEqual(cluster.state());
        expect(cluster.state()['default/seed-1']).toBe('51');
      },
      { prepare: seed(3) },
    ));

  test('takes with it what was remembered of our own writes', () =>
    withReflector(
      async (harness) => {
        const { cluster, reflector, cache, events, caughtUp } = harness;
        const names = ['seed-0', 'seed-1', 'seed-2'];
        await restored(harness, 50, () => names.forEach((name) => cluster.put(name)));
        const { metadata, ...rest } = cluster.put('seed-0');
        // The answer to a write before the restore.
        cache.observeWrite({ ...rest, metadata: { ...metadata, resourceVersion: '110' } });
        expect(await reflector.checkConsistency()).toHaveProperty('rollback');
        events.length = 0;
        cache.observeWrite(cluster.put('seed-0'));
        expect(stateOf(cache)).toEqual(cluster.state());
        // Somebody else's change comes to the same version as that write.
        cluster.tick(109 - 55);
        cluster.put('seed-0');
        expect(cluster.state()['default/seed-0']).toBe('110');
        await caughtUp();
        expect(events.map(({ type }) => type)).toEqual(['updated']);
      },
      { prepare: seed(3) },
    ));
});
