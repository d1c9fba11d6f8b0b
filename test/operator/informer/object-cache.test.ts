import type { KubeObject, ObjectMeta } from '../../../constructs/kube/kube-object';
import type { CacheEvent } from '../../../operator/informer/projection';
import { ObjectCache, type ObjectCacheOptions } from '../../../operator/informer/object-cache';
import { CONFIG_MAPS } from '../support/fake-cluster';

function at(version: number, metadata: Partial<ObjectMeta> = {}, data = `v${version}`): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', namespace: 'n', uid: 'u1', ...metadata, resourceVersion: String(version) },
    data,
  };
}

const A = { namespace: 'n', name: 'a' };

function setUp(options: ObjectCacheOptions = {}): { cache: ObjectCache; told: () => string[]; events: CacheEvent[] } {
  const cache = new ObjectCache(CONFIG_MAPS, options);
  const events: CacheEvent[] = [];
  cache.addEventHandler((event) => events.push(event));
  const show = ({ object }: CacheEvent['object']): string =>
    `${object.metadata.uid}@${object.metadata.resourceVersion}`;
  const told = (): string[] =>
    events
      .splice(0)
      .map(({ type, object, old }) => `${type} ${show(object)}${old === undefined ? '' : ` was ${show(old)}`}`);
  return { cache, told, events };
}

function versionOf(cache: ObjectCache): string | undefined {
  return cache.get(A)?.object.metadata.resourceVersion;
}

test('follows additions, changes and deletions', () => {
  const { cache, told } = setUp();
  cache.applyChange(at(1));
  cache.applyChange(at(2));
  cache.applyDeletion(at(3));
  expect(told()).toEqual(['added u1@1', 'updated u1@2 was u1@1', 'deleted u1@3 was u1@2']);
  expect(cache.size).toBe(0);
});

test('an event at or below what the stream told already raises nothing', () => {
  const { cache, told } = setUp();
  cache.applyChange(at(5));
  told();
  cache.applyChange(at(5));
  cache.applyChange(at(4));
  expect(told()).toEqual([]);
  expect(versionOf(cache)).toBe('5');
});

test('versions compare as numbers', () => {
  const { cache, told } = setUp();
  cache.applyChange(at(9));
  cache.applyChange(at(10));
  expect(told()).toEqual(['added u1@9', 'updated u1@10 was u1@9']);
});

describe('writes of our own', () => {
  test('are read back at once, and raise nothing, nor do their echoes', () => {
    const { cache, told } = setUp();
    cache.observeWrite(at(1));
    expect(versionOf(cache)).toBe('1');
    cache.applyChange(at(1));
    cache.observeWrite(at(2));
    cache.observeWrite(at(3));
    expect(versionOf(cache)).toBe('3');
    cache.applyChange(at(2));
    cache.applyChange(at(3));
    expect(told()).toEqual([]);
  });

  test('have echoes that are known by their version, once, and are told to observers', () => {
    const { cache, told } = setUp();
    const observed: CacheEvent[] = [];
    cache.addObserver((event) => observed.push(event));
    cache.observeWrite(at(1));
    cache.observeWrite(at(2));
    expect(cache.applyEcho('3')).toBe(false);
    expect(cache.applyEcho('1')).toBe(true);
    expect(cache.applyEcho('1')).toBe(false);
    expect(cache.applyEcho('2')).toBe(true);
    expect(cache.resourceVersion).toBe('2');
    expect(told()).toEqual([]);
    expect(observed.map(({ type, object }) => [type, object.object.metadata.resourceVersion])).toEqual([
      ['updated', '2'],
      ['updated', '2'],
    ]);
    cache.observeWrite(at(4));
    cache.applyDeletion(at(5));
    expect(cache.applyEcho('4')).toBe(false);
  });

  test('do not hide a change that somebody else made just before', () => {
    const { cache, told } = setUp();
    cache.applyChange(at(1));
    told();
    cache.observeWrite(at(3));
    cache.applyChange(at(2));
    cache.applyChange(at(3));
    expect(told()).toEqual(['updated u1@3']);
  });

  test('do not hide a change that somebody else makes after', () => {
    const { cache, told } = setUp();
    cache.applyChange(at(1));
    cache.observeWrite(at(2));
    told();
    cache.applyChange(at(2));
    cache.applyChange(at(3));
    expect(told()).toEqual(['updated u1@3 was u1@2']);
  });

  test('whose answer is late do not bring a deleted object back', () => {
    const { cache, told } = setUp();
    cache.applyChange(at(1));
    cache.applyChange(at(2));
    cache.applyDeletion(at(3));
    told();
    cache.observeWrite(at(2));
    expect(cache.get(A)).toBeUndefined();
    expect(told()).toEqual([]);
  });

  test('whose answer is late do not bring an object back that a list did not hold', () => {
    const { cache } = setUp();
    cache.replace([], '10');
    cache.observeWrite(at(9));
    expect(cache.get(A)).toBeUndefined();
    cache.observeWrite(at(11));
    expect(versionOf(cache)).toBe('11');
  });

  test('never store an older state', () => {
    const { cache } = setUp();
    cache.applyChange(at(5));
    cache.observeWrite(at(4));
    expect(versionOf(cache)).toBe('5');
  });

  test('that recreate a name let the old object be seen as deleted', () => {
    const { cache, told } = setUp();
    cache.applyChange(at(1));
    told();
    cache.observeWrite(at(4, { uid: 'u2' }));
    cache.applyDeletion(at(3));
    cache.applyChange(at(4, { uid: 'u2' }));
    expect(told()).toEqual(['deleted u1@1 was u1@1']);
    expect(cache.get(A)?.object.metadata.uid).toBe('u2');
  });

  test('are answered with the deletion that somebody else asked for: its event is raised', () => {
    const { cache, told } = setUp();
    cache.applyChange(at(1));
    told();
    cache.observeWrite(at(2, { deletionTimestamp: 't' }));
    cache.applyChange(at(2, { deletionTimestamp: 't' }));
    expect(told()).toEqual(['updated u1@2']);
  });

  test('of status only are answered with a new generation: its event is raised', () => {
    const { cache, told } = setUp({ ownWritesKeepSpec: true });
    cache.applyChange(at(1, { generation: 1 }));
    told();
    cache.observeWrite(at(2, { generation: 1 }));
    cache.applyChange(at(2, { generation: 1 }));
    expect(told()).toEqual([]);
    // A write that changed nothing, answered with the user's change.
    cache.observeWrite(at(3, { generation: 2 }));
    cache.applyChange(at(3, { generation: 2 }));
    cache.observeWrite(at(4, { generation: 2, annotations: { 'kindred.dev/paused': 'true' } }));
    cache.applyChange(at(4, { generation: 2, annotations: { 'kindred.dev/paused': 'true' } }));
    expect(told()).toEqual(['updated u1@3', 'updated u1@4']);
  });
});

describe('tracked writes', () => {
  test('drop an echo that overtakes its answer, and only that', async () => {
    const { cache, told } = setUp();
    cache.applyChange(at(1));
    told();
    await cache.trackWrite(A, () => {
      cache.applyChange(at(2));
      cache.applyChange(at(3));
      cache.applyChange(at(4));
      expect(versionOf(cache)).toBe('4');
      expect(told()).toEqual([]);
      return Promise.resolve(at(3));
    });
    expect(told()).toEqual(['updated u1@2 was u1@1', 'updated u1@4 was u1@3']);
  });

  test('drop the echo of a create', async () => {
    const { cache, told } = setUp();
    await cache.trackWrite(A, () => {
      cache.applyChange(at(2));
      return Promise.resolve(at(2));
    });
    expect(told()).toEqual([]);
    expect(versionOf(cache)).toBe('2');
  });

  test('that fail let go of everything', async () => {
    const { cache, told } = setUp();
    const failed = cache.trackWrite(A, () => {
      cache.applyChange(at(2));
      return Promise.reject(new Error('conflict'));
    });
    await expect(failed).rejects.toThrow('conflict');
    expect(told()).toEqual(['added u1@2']);
  });

  test('may overlap; events wait for the last', async () => {
    const { cache, told } = setUp();
    await cache.trackWrite(A, async () => {
      await cache.trackWrite(A, () => {
        cache.applyChange(at(2));
        return Promise.resolve(at(3));
      });
      expect(told()).toEqual([]);
      return at(4);
    });
    expect(told()).toEqual(['added u1@2']);
  });

  test('hold nothing back from observers and other objects', async () => {
    const { cache, told } = setUp();
    const seen: CacheEvent[] = [];
    cache.addObserver((event) => seen.push(event));
    await cache.trackWrite(A, () => {
      cache.applyChange(at(2));
      cache.applyChange(at(3, { name: 'b', uid: 'u3' }));
      expect(seen).toHaveLength(2);
      expect(told()).toEqual(['added u3@3']);
      return Promise.resolve(at(2));
    });
  });
});

describe('a list', () => {
  const entries = (cache: ObjectCache, ...objects: KubeObject[]): ReturnType<ObjectCache['project']>[] =>
    objects.map((object) => cache.project(object));

  test('raises what changed, deletions with the last known state', () => {
    const { cache, told } = setUp();
    cache.replace(entries(cache, at(1), at(2, { name: 'b', uid: 'u2' }), at(3, { name: 'c', uid: 'u3' })), '3');
    expect(told()).toEqual(['added u1@1', 'added u2@2', 'added u3@3']);
    cache.replace(entries(cache, at(1), at(5, { name: 'b', uid: 'u2' })), '6');
    expect(told()).toEqual(['updated u2@5 was u2@2', 'deleted u3@3 was u3@3']);
  });

  test('keeps what our writes made after it', () => {
    const { cache, told } = setUp();
    cache.replace([], '3');
    cache.observeWrite(at(8));
    cache.replace([], '6');
    expect(versionOf(cache)).toBe('8');
    cache.replace(entries(cache, at(7)), '7');
    expect(versionOf(cache)).toBe('8');
    expect(told()).toEqual(['updated u1@8']);
  });

  test('shows a recreated object as deleted and added', () => {
    const { cache, told } = setUp();
    cache.applyChange(at(1));
    told();
    cache.replace(entries(cache, at(5, { uid: 'u2' })), '6');
    expect(told()).toEqual(['deleted u1@1 was u1@1', 'added u2@5']);
  });

  test('of a history that was set back wins over everything', () => {
    const { cache, told } = setUp();
    cache.replace(entries(cache, at(90)), '100');
    cache.observeWrite(at(120, { name: 'b', uid: 'u2' }));
    told();
    cache.replace(entries(cache, at(40)), '50');
    expect(told()).toEqual(['updated u1@40 was u1@90', 'deleted u2@120 was u2@120']);
    expect(cache.resourceVersion).toBe('50');
    cache.applyChange(at(51));
    expect(told()).toEqual(['updated u1@51 was u1@40']);
  });
});

test('a missed deletion shows when the name comes back', () => {
  const { cache, told } = setUp();
  cache.applyChange(at(1));
  cache.applyChange(at(4, { uid: 'u2' }));
  expect(told()).toEqual(['added u1@1', 'deleted u1@1 was u1@1', 'added u2@4']);
});

describe('indexes', () => {
  const owner = (...uids: string[]): Partial<ObjectMeta> => ({
    ownerReferences: uids.map((uid) => ({ apiVersion: 'v1', kind: 'X', name: 'x', uid })),
  });

  test('find by every owner, after changes, writes and deletions too', () => {
    const { cache } = setUp();
    cache.applyChange(at(1, owner('o1', 'o2')));
    expect(cache.byOwner('o1')).toHaveLength(1);
    expect(cache.byOwner('o2')).toHaveLength(1);
    cache.observeWrite(at(2, owner('o2', 'o3')));
    expect(cache.byOwner('o1')).toEqual([]);
    expect(cache.byOwner('o3')).toEqual([cache.get(A)]);
    cache.applyDeletion(at(3));
    expect(cache.byOwner('o3')).toEqual([]);
  });

  test('may be added by name; an unknown one says which there are', () => {
    const { cache } = setUp({ indexes: { byData: ({ object }) => [String(object['data'])] } });
    cache.applyChange(at(1));
    expect(cache.byIndex('byData', 'v1')).toEqual([cache.get(A)]);
    expect(() => cache.byIndex('nope', 'x')).toThrow('it has: byData');
  });
});

test('writes are projected like everything else', () => {
  const { cache } = setUp({
    project: (object) => ({ object: { ...object, data: 'cut' }, facts: { createdByUpdate: false } }),
  });
  cache.observeWrite(at(1));
  expect(cache.get(A)?.object['data']).toBe('cut');
  expect(cache.list('n')).toHaveLength(1);
  expect(cache.list('other')).toEqual([]);
});

test('a handler that throws is reported, and keeps nobody else from the event', () => {
  const thrown: unknown[] = [];
  const { cache, events } = setUp({ onHandlerError: (error) => thrown.push(error) });
  cache.addEventHandler(() => {
    throw new Error('a bug');
  });
  const later: CacheEvent[] = [];
  const stop = cache.addEventHandler((event) => later.push(event));
  cache.applyChange(at(1));
  stop();
  cache.applyChange(at(2));
  expect(thrown).toHaveLength(2);
  expect(events).toHaveLength(2);
  expect(later).toHaveLength(1);
});
