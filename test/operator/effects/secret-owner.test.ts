import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { StateStore } from '../../../operator/effects/state-store';
import { MemoryApiServer } from '../../../testing/api-server/memory-api-server';
import { Thing } from './world';

const namespace = 'system';
const owner = (): KubeObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  metadata: { name: 'a', namespace, uid: 'u-1' },
});

let server: MemoryApiServer;
let retained: boolean;
const store = (): StateStore =>
  new StateStore({
    ...{ client: server, kind: Thing },
    refOf: ({ metadata }) => ({ namespace, name: `${metadata.name}-state` }),
    retain: () => retained,
  });
const state = (value: string) => ({ records: {}, values: { value } });
const secret = (name = 'a-state') => server.peek(owned.Secret, { namespace, name });

beforeEach(() => {
  server = new MemoryApiServer();
  retained = false;
});

describe('a Secret whose owner was taken off by the garbage collector', () => {
  const strip = () =>
    server.edit(owned.Secret, { namespace, name: 'a-state' }, (object) => ({
      ...object,
      metadata: { ...object.metadata, ownerReferences: [] },
    }));
  const owners = () => secret()?.metadata.ownerReferences?.map(({ uid }) => uid);
  /** What stands of the owner. */
  async function stands(metadata: object): Promise<KubeObject> {
    const made = await server.create(
      Thing.type,
      { ...owner(), metadata: { name: 'a', namespace } },
      { fieldManager: 'x' },
    );
    server.edit(Thing.type, { namespace, name: 'a' }, (object) => ({
      ...object,
      metadata: { ...object.metadata, ...metadata },
    }));
    return made;
  }

  test('tells that its owner was orphaned, and a save does not claim it', async () => {
    const kept = store();
    await kept.save(owner(), state('one'));
    expect(await kept.isOrphaned(owner())).toBe(false);
    strip();
    await kept.save(owner(), state('two'));
    expect(owners()).toEqual([]);
    expect(await store().isOrphaned(owner())).toBe(true);
    retained = true;
    expect(await store().isOrphaned(owner())).toBe(false);
  });

  test('is given it back while that lives', async () => {
    const live = await stands({});
    await store().save(live, state('one'));
    strip();
    await store().syncOwnerReference(live);
    expect(owners()).toEqual([live.metadata.uid]);
  });

  test('is not given it back when that is being deleted, though it is not known here yet', async () => {
    const live = await stands({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['example.com/thing'] });
    await store().save(live, state('one'));
    strip();
    await store().syncOwnerReference(live);
    expect(owners()).toEqual([]);
    expect(await store().isOrphaned(live)).toBe(true);
  });

  test('is another one than that which its owner asked to stay, and asks for no more', async () => {
    retained = true;
    await store().save(owner(), state('one'));
    retained = false;
    const going = { ...owner(), metadata: { ...owner().metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(await store().isOrphaned(going)).toBe(false);
    await store().syncOwnerReference(going);
    expect(owners()).toEqual(['u-1']);
  });

  test('of an older version, whose owner asked for that, is marked as such', async () => {
    await store().save(owner(), state('one'));
    strip();
    retained = true;
    await store().syncOwnerReference(owner());
    retained = false;
    expect(await store().isOrphaned(owner())).toBe(false);
  });

  test('is cut off by us too, with what is besides it, and told of', async () => {
    const kept = store();
    await kept.save(owner(), state('one'));
    const theirs = { apiVersion: 'v1', kind: 'ConfigMap', name: 'theirs', uid: 'u-9' };
    server.edit(owned.Secret, { namespace, name: 'a-state' }, (object) => ({
      ...object,
      metadata: { ...object.metadata, ownerReferences: [theirs, ...(object.metadata.ownerReferences ?? [])] },
    }));
    expect(await kept.orphan(owner())).toEqual(['Secret system/a-state']);
    expect(owners()).toEqual(['u-9']);
    await kept.release(owner());
    expect(await store().isOrphaned(owner())).toBe(true);
    server.takeRequests();
    await store().orphan(owner());
    expect(server.writes).toEqual([]);
  });
});

test('a Secret that was left behind has an owner again once it is given the UID of another one', async () => {
  const kept = store();
  await kept.save(owner(), state('one'));
  await kept.orphan(owner());
  await kept.release(owner());
  server.edit(owned.Secret, { namespace, name: 'a-state' }, (object) => ({
    ...object,
    metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, 'kindred.dev/owner-uid': 'u-2' } },
  }));
  const anew = { ...owner(), metadata: { ...owner().metadata, uid: 'u-2' } };
  await store().syncOwnerReference(anew);
  expect(await store().isOrphaned(anew)).toBe(false);
  expect(secret()?.metadata).toMatchObject({ ownerReferences: [{ uid: 'u-2' }], finalizers: ['kindred.dev/state'] });
  expect(await store().load(anew)).toEqual(state('one'));
});

test('a Secret that is as its owner wants it is not written, by the next process either', async () => {
  for (const stays of [false, true]) {
    retained = stays;
    await store().save(owner(), state('one'));
    await store().syncOwnerReference(owner());
    // As the API server has it: an empty list is none.
    server.edit(owned.Secret, { namespace, name: 'a-state' }, (object) => {
      const { ownerReferences = [], ...metadata } = object.metadata;
      return { ...object, metadata: { ...metadata, ...(ownerReferences.length > 0 && { ownerReferences }) } };
    });
    server.takeRequests();
    await store().syncOwnerReference(owner());
    expect(server.writes).toEqual([]);
  }
});
