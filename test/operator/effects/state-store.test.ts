import { randomBytes } from 'node:crypto';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { ApiError } from '../../../operator/client/errors';
import { PlanError } from '../../../operator/effects/plan-runner';
import { MAX_STATE_BYTES, StateStore } from '../../../operator/effects/state-store';
import { MemoryApiServer } from '../../../testing/api-server/memory-api-server';
import { conflict } from '../../../testing/api-server/requests';
import { Thing } from './world';

const namespace = 'system';
const owner = (uid = 'u-1'): KubeObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  metadata: { name: 'a', namespace, uid },
});

let server: MemoryApiServer;
let retained: boolean;
let warnings: string[];
const store = (): StateStore =>
  new StateStore({
    client: server,
    kind: Thing,
    refOf: ({ metadata }) => ({ namespace, name: `${metadata.name}-state` }),
    retain: () => retained,
    additionalSecrets: ({ metadata }) => [`${metadata.name}-more`],
    onWarning: (message) => warnings.push(message),
  });
const state = (value: string) => ({ records: {}, values: { value } });
const secret = (name = 'a-state') => server.peek(owned.Secret, { namespace, name });

/** All that a store holds in its maps. */
function remembered(kept: StateStore): readonly unknown[][] {
  return Object.values(kept)
    .filter((field) => field instanceof Map)
    .map((map) => [...map.entries()]);
}

/** Somebody deletes the Secret, and takes off what holds it. */
function destroy(): void {
  const ref = { namespace, name: 'a-state' };
  server.edit(owned.Secret, ref, (object) => ({ ...object, metadata: { ...object.metadata, finalizers: [] } }));
  server.remove(owned.Secret, ref);
}

beforeEach(() => {
  server = new MemoryApiServer();
  retained = false;
  warnings = [];
});

test('what is saved is loaded, by another process too', async () => {
  const first = store();
  expect(await first.load(owner())).toEqual({ records: {}, values: {} });
  await first.save(owner(), state('one'));
  await first.save(owner(), state('two'));
  expect(await store().load(owner())).toEqual(state('two'));
});

test('of two processes the one that is behind is refused, each time, until it has loaded anew', async () => {
  const [first, second] = [store(), store()];
  await first.load(owner());
  await second.load(owner());
  await first.save(owner(), state('first'));
  await expect(second.save(owner(), state('second'))).rejects.toThrow(ApiError);
  await second.load(owner());
  await second.save(owner(), state('second'));
  await expect(first.save(owner(), state('first'))).rejects.toThrow(ApiError);
  await expect(first.save(owner(), state('first'))).rejects.toThrow(ApiError);
  expect(await store().load(owner())).toEqual(state('second'));
});

test('one that somebody deleted is made again', async () => {
  const kept = store();
  await kept.load(owner());
  await kept.save(owner(), state('one'));
  destroy();
  await kept.save(owner(), state('two'));
  expect(await store().load(owner())).toEqual(state('two'));
});

test('of an owner that is gone nothing is remembered, and the next of its name has nothing of it', async () => {
  const kept = store();
  await kept.save(owner(), state('old'));
  await kept.syncOwnerReference(owner());
  await kept.release(owner());
  server.takeRequests();
  await kept.forget(owner());
  expect(server.takeRequests()).toEqual([]);
  expect(JSON.stringify([...remembered(kept)])).toBe('[[],[]]');
  await expect(kept.save(owner('u-2'), state('new'))).rejects.toThrow('is the state of an earlier Thing a, and');
});

describe('what others put on the Secret', () => {
  const label = (value: string): unknown =>
    server.edit(owned.Secret, { namespace, name: 'a-state' }, (object) => {
      const { labels, annotations, ...metadata } = object.metadata;
      const team = { team: value };
      return {
        ...object,
        metadata: { ...metadata, labels: { ...labels, ...team }, annotations: { ...annotations, ...team } },
      };
    });

  test('stands in the way of no save, and stays', async () => {
    const kept = store();
    await kept.save(owner(), state('one'));
    label('x');
    await kept.save(owner(), state('two'));
    await kept.save(owner(), state('three'));
    expect(secret()?.metadata).toMatchObject({
      labels: { team: 'x', 'app.kubernetes.io/managed-by': 'kindred' },
      annotations: { team: 'x', 'kindred.dev/owner-uid': 'u-1' },
    });
    expect(await store().load(owner())).toEqual(state('three'));
  });

  test('is no leave to overwrite data that has changed with it', async () => {
    const [first, second] = [store(), store()];
    await first.save(owner(), state('one'));
    await second.load(owner());
    await second.save(owner(), state('second'));
    label('x');
    await expect(first.save(owner(), state('first'))).rejects.toThrow(ApiError);
    expect(await store().load(owner())).toEqual(state('second'));
  });

  test('is given up on when it changes with each try', async () => {
    const kept = store();
    await kept.save(owner(), state('one'));
    let times = 0;
    server.before = ({ verb }) => {
      if (verb === 'PUT') label(String((times += 1)));
    };
    await expect(kept.save(owner(), state('two'))).rejects.toThrow(ApiError);
    expect(times).toBe(5);
  });
});

test('one that was deleted is made again where the server says that its UID is another, too', async () => {
  const kept = store();
  await kept.save(owner(), state('one'));
  destroy();
  server.before = ({ verb }) => {
    if (verb === 'PUT') throw conflict('Precondition failed: UID in precondition: uid-1, UID in object meta: ');
  };
  await kept.save(owner(), state('two'));
  expect(await store().load(owner())).toEqual(state('two'));
});

test('a policy that changes is no leave to overwrite what another process has stored', async () => {
  const [first, second] = [store(), store()];
  await first.save(owner(), state('one'));
  await second.load(owner());
  await second.save(owner(), state('second'));
  retained = true;
  await first.syncOwnerReference(owner());
  expect(secret()?.metadata.ownerReferences).toEqual([]);
  await expect(first.save(owner(), state('first'))).rejects.toThrow(ApiError);
});

describe('the finalizer', () => {
  const finalizers = (): readonly string[] | undefined => secret()?.metadata.finalizers;
  const add = (...names: readonly string[]) =>
    server.edit(owned.Secret, { namespace, name: 'a-state' }, (object) => ({
      ...object,
      metadata: { ...object.metadata, finalizers: names },
    }));

  test('holds what somebody deletes, which is read and written as ever, until it is released', async () => {
    const kept = store();
    await kept.save(owner(), state('one'));
    server.remove(owned.Secret, { namespace, name: 'a-state' });
    await kept.save(owner(), state('two'));
    expect(secret()?.metadata.deletionTimestamp).toBeDefined();
    expect(await store().load(owner())).toEqual(state('two'));
    await store().release(owner());
    expect(secret()).toBeUndefined();
  });

  test('goes alone: what nobody deleted stays, and what is released is not written again', async () => {
    const kept = store();
    await kept.save(owner(), state('one'));
    add('example.com/theirs', ...(finalizers() ?? []));
    await store().release(owner());
    expect(finalizers()).toEqual(['example.com/theirs']);
    server.takeRequests();
    await store().release(owner());
    expect(server.writes).toEqual([]);
    expect(await store().load(owner())).toEqual(state('one'));
  });

  test('of another object is left alone', async () => {
    await store().save(owner('u-0'), state('old'));
    await store().release(owner());
    expect(finalizers()).toEqual(['kindred.dev/state']);
  });

  test("is put on what an older version made, beside others' finalizers, but not while its owner goes", async () => {
    await store().save(owner(), state('one'));
    add('example.com/theirs');
    const going = { ...owner(), metadata: { ...owner().metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    await store().syncOwnerReference(going);
    expect(finalizers()).toEqual(['example.com/theirs']);
    await store().syncOwnerReference(owner());
    expect(finalizers()).toEqual(['example.com/theirs', 'kindred.dev/state']);
    expect(secret()?.metadata.ownerReferences).toHaveLength(1);
    add('example.com/theirs');
    const kept = store();
    await kept.load(owner());
    await kept.save(owner(), state('two'));
    expect(finalizers()).toEqual(['example.com/theirs', 'kindred.dev/state']);
  });

  test('is not put on what is being deleted: the server refuses that', async () => {
    await store().save(owner(), state('one'));
    add('example.com/theirs');
    server.remove(owned.Secret, { namespace, name: 'a-state' });
    const kept = store();
    await kept.load(owner());
    await kept.syncOwnerReference(owner());
    await kept.save(owner(), state('two'));
    expect(finalizers()).toEqual(['example.com/theirs']);
  });

  test('goes after an owner that is gone without it', async () => {
    const kept = store();
    await kept.save(owner(), state('one'));
    server.remove(owned.Secret, { namespace, name: 'a-state' });
    await kept.forget(owner());
    expect(secret()).toBeUndefined();
  });

  test('that cannot be taken off any more is told of, once', async () => {
    const kept = store();
    await kept.save(owner(), state('one'));
    server.before = ({ verb }) => {
      if (verb === 'PUT') throw new Error('no connection');
    };
    await kept.forget(owner());
    await kept.forget(owner());
    expect(warnings).toEqual([
      'the Secret system/a-state stays though its owner is gone, until its finalizer kindred.dev/state is taken off: no connection',
    ]);
    expect(remembered(kept).flat()).toEqual([]);
  });

  test('is named where it holds the Secret of an earlier object', async () => {
    await store().save(owner('u-0'), state('old'));
    server.remove(owned.Secret, { namespace, name: 'a-state' });
    await expect(store().load(owner())).rejects.toThrow('goes once its finalizer kindred.dev/state is taken off');
  });
});

test('one of somebody else, or of an earlier object of the name, is neither read nor written', async () => {
  await store().save(owner('u-0'), state('old'));
  const before = secret();
  for (const act of [store().load(owner()), store().save(owner(), state('new'))]) {
    const error: unknown = await act.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof PlanError)) throw error;
    expect(error).toMatchObject({ reason: 'ErrResourceExists', details: { isTerminal: true } });
    expect(error.message).toContain('Secret system/a-state belongs to an earlier object of that name (UID u-0)');
  }
  expect(secret()).toEqual(before);
});

test('what a Secret cannot hold is refused with both sizes, and what stood stays', async () => {
  const kept = store();
  await kept.save(owner(), state('small'));
  const large = state(randomBytes(MAX_STATE_BYTES).toString('base64'));
  const sizes = /ha(ve|s) [0-9]{7} bytes, compressed; Secret system\/a-state holds at most 1048576\. Make it smaller/;
  await expect(kept.save(owner(), large)).rejects.toThrow(sizes);
  await expect(kept.assertFits(owner(), large)).rejects.toThrow(sizes);
  await kept.assertFits(owner(), state('x'.repeat(4 * MAX_STATE_BYTES)));
  expect(await store().load(owner())).toEqual(state('small'));
});

test('a policy that changes later holds for all Secrets, once', async () => {
  const kept = store();
  await kept.load(owner());
  await kept.save(owner(), state('one'));
  const more = {
    ...secret()!,
    metadata: { ...secret()!.metadata, name: 'a-more', uid: undefined, resourceVersion: undefined },
  };
  await server.create(owned.Secret, JSON.parse(JSON.stringify(more)) as KubeObject, { fieldManager: 'kubectl' });
  const owners = () => ['a-state', 'a-more'].map((name) => secret(name)?.metadata.ownerReferences?.length ?? 0);
  expect(owners()).toEqual([1, 1]);
  retained = true;
  await kept.syncOwnerReference(owner());
  expect(owners()).toEqual([0, 0]);
  server.takeRequests();
  await kept.syncOwnerReference(owner());
  expect(server.writes).toEqual([]);
  await kept.save(owner(), state('two'));
  retained = false;
  await kept.syncOwnerReference(owner());
  expect(owners()).toEqual([1, 1]);
});
