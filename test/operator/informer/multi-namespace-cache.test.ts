import type { KubeObject } from '../../../constructs/kube/kube-object';
import { MultiNamespaceCache } from '../../../operator/informer/cache-view';
import { ObjectCache } from '../../../operator/informer/object-cache';
import { CONFIG_MAPS } from '../support/fake-cluster';

const OWNER = { apiVersion: 'v1', kind: 'Owner', name: 'o', uid: 'owner' };

function at(namespace: string, version: number, name = 'a'): KubeObject {
  const uid = `${namespace}-${name}`;
  const resourceVersion = String(version);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, uid, resourceVersion, ownerReferences: [OWNER], labels: { color: 'red' } },
  };
}

function setUp(): { one: ObjectCache; two: ObjectCache; both: MultiNamespaceCache } {
  const indexes = { color: ({ object }: { object: KubeObject }) => [object.metadata.labels?.['color'] ?? ''] };
  const one = new ObjectCache(CONFIG_MAPS, { indexes });
  const two = new ObjectCache(CONFIG_MAPS, { indexes });
  const caches = new Map([
    ['one', one],
    ['two', two],
  ]);
  return { one, two, both: new MultiNamespaceCache(CONFIG_MAPS, caches) };
}

function names(entries: readonly { readonly object: KubeObject }[]): readonly string[] {
  return entries.map(({ object: { metadata } }) => `${metadata.namespace ?? ''}/${metadata.name}`);
}

describe('the caches of several namespaces', () => {
  it('are read as one', () => {
    const { one, two, both } = setUp();
    one.applyChange(at('one', 1));
    two.applyChange(at('two', 2));
    two.applyChange(at('two', 3, 'b'));
    expect(both.type).toBe(CONFIG_MAPS);
    expect(both.size).toBe(3);
    expect(names(both.list())).toEqual(['one/a', 'two/a', 'two/b']);
    expect(names(both.byOwner('owner'))).toEqual(['one/a', 'two/a', 'two/b']);
    expect(names(both.byIndex('color', 'red'))).toEqual(['one/a', 'two/a', 'two/b']);
    expect(both.byOwner('nobody')).toEqual([]);
  });

  it('tell objects of one name apart by their namespaces', () => {
    const { one, two, both } = setUp();
    one.applyChange(at('one', 1));
    expect(both.get({ namespace: 'one', name: 'a' })?.object.metadata.uid).toBe('one-a');
    expect(both.get({ namespace: 'two', name: 'a' })).toBeUndefined();
    two.applyChange(at('two', 2));
    expect(names(both.list('two'))).toEqual(['two/a']);
    one.applyDeletion(at('one', 3));
    expect(names(both.list())).toEqual(['two/a']);
  });

  it('know nothing of a namespace that is not watched', () => {
    const { both } = setUp();
    expect(both.get({ namespace: 'three', name: 'a' })).toBeUndefined();
    expect(both.get({ name: 'a' })).toBeUndefined();
    expect(both.list('three')).toEqual([]);
    expect(() => both.reproject({ namespace: 'three', name: 'a' }, (entry) => entry)).not.toThrow();
  });

  it('raise the events of each, until told to stop', () => {
    const { one, two, both } = setUp();
    const told: string[] = [];
    const end = both.addEventHandler(({ type, object }) => told.push(`${type} ${names([object])[0] ?? ''}`));
    one.applyChange(at('one', 1));
    two.applyChange(at('two', 2));
    end();
    one.applyChange(at('one', 3));
    expect(told).toEqual(['added one/a', 'added two/a']);
  });

  it('read their own writes, each by its own versions, and raise nothing', async () => {
    const { one, two, both } = setUp();
    const told: string[] = [];
    both.addEventHandler(({ type }) => told.push(type));
    two.advance('50');
    await both.trackWrite({ namespace: 'one', name: 'a' }, async () => Promise.resolve(at('one', 7)));
    expect(both.get({ namespace: 'one', name: 'a' })?.object.metadata.resourceVersion).toBe('7');
    one.applyChange(at('one', 7));
    both.observeWrite(at('one', 9));
    expect(both.get({ namespace: 'one', name: 'a' })?.object.metadata.resourceVersion).toBe('9');
    expect(told).toEqual([]);
  });

  it('send no write to a namespace that is not watched: its outcome could never be seen', async () => {
    const { both } = setUp();
    const send = jest.fn(async () => Promise.resolve(at('three', 1)));
    await expect(both.trackWrite({ namespace: 'three', name: 'a' }, send)).rejects.toThrow(
      'namespace "three" is not among those that are watched: one, two',
    );
    expect(send).not.toHaveBeenCalled();
    expect(() => both.observeWrite(at('three', 1))).toThrow(RangeError);
  });
});
