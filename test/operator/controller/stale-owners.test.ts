import type { KubeObject } from '../../../constructs/kube/kube-object';
import { HelloApp } from '../../../constructs/kinds';
import { ObjectCache } from '../../../operator/informer/object-cache';
import type { ApiClient } from '../../../operator/client/api-client';
import { StaleOwners } from '../../../operator/controller/controller';

const ref = { namespace: 'shop', name: 'web' };

function object(uid: string, resourceVersion: string): KubeObject {
  const { apiVersion, kind } = HelloApp;
  return { apiVersion, kind, metadata: { ...ref, uid, resourceVersion } };
}

/** The object while it is being deleted. */
function going(resourceVersion: string): KubeObject {
  const { metadata, ...rest } = object('a', resourceVersion);
  return { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-02T00:00:00Z' } };
}

describe('Doubts', () => {
  let live: KubeObject | undefined;
  let asked: number;
  let onAsked: () => void;
  let cache: ObjectCache;
  let doubts: StaleOwners;

  beforeEach(() => {
    live = object('a', '1');
    asked = 0;
    onAsked = () => undefined;
    cache = new ObjectCache(HelloApp.type);
    cache.applyChange(object('a', '1'));
    // Its permissions are to list and to watch its kinds, not to get their objects.
    const list: ApiClient['list'] = (_type, options) => {
      asked += 1;
      onAsked();
      expect(options).toMatchObject({ namespace: 'shop', fieldSelector: 'metadata.name=web' });
      return Promise.resolve({ items: live === undefined ? [] : [live], resourceVersion: '2' });
    };
    doubts = new StaleOwners({ client: { list }, kind: HelloApp, objects: cache });
  });

  it('asks nothing while there is none', async () => {
    await doubts.verify(ref);
    expect(asked).toBe(0);
  });

  it('asks once, and no more when the object stands', async () => {
    doubts.mark(ref);
    await doubts.verify(ref);
    await doubts.verify(ref);
    expect(asked).toBe(1);
  });

  it('lasts while the server has no such object, or another of its name', async () => {
    doubts.mark(ref);
    live = undefined;
    await expect(doubts.verify(ref)).rejects.toMatchObject({ code: 409 });
    live = object('b', '2');
    await expect(doubts.verify(ref)).rejects.toThrow('helloapps "web" was deleted, or replaced');
    expect(asked).toBe(2);
  });

  it('lasts while the server is deleting the object and the cache has not heard of it', async () => {
    doubts.mark(ref);
    live = going('2');
    await expect(doubts.verify(ref)).rejects.toThrow(
      'helloapps "web" is being deleted, and no event has told of it yet',
    );
    cache.applyChange(going('2'));
    await doubts.verify(ref);
    await doubts.verify(ref);
    expect(asked).toBe(2);
  });

  it('ends when the event comes while the server is asked', async () => {
    doubts.mark(ref);
    live = going('2');
    onAsked = () => cache.applyChange(going('2'));
    await doubts.verify(ref);
    expect(asked).toBe(1);
  });

  it.each([
    ['the deletion', () => cache.applyDeletion(object('a', '2'))],
    ['the successor', () => cache.applyChange(object('b', '2'))],
  ])('ends with the event of %s', async (_what, tell) => {
    doubts.mark(ref);
    live = undefined;
    tell();
    await doubts.verify(ref);
    expect(asked).toBe(0);
  });

  it('outlasts a look that was on its way when it was raised again', async () => {
    doubts.mark(ref);
    onAsked = () => doubts.mark(ref);
    await doubts.verify(ref);
    onAsked = () => undefined;
    live = undefined;
    await expect(doubts.verify(ref)).rejects.toMatchObject({ code: 409 });
  });

  it('is not raised about what the cache does not hold', async () => {
    doubts.mark({ ...ref, name: 'other' });
    await doubts.verify({ ...ref, name: 'other' });
    expect(asked).toBe(0);
  });
});
