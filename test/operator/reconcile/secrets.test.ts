import { ApiObject } from 'cdk8s';
import { z } from 'zod';
import { mapOf } from '../../../constructs/kind/fields';
import { defineKind } from '../../../constructs/kind/kind';
import { controllerReference, withEnvelope } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { childHash } from '../../../operator/apply/diff';
import { managedFieldsOf } from '../../../operator/informer/field-ownership';
import { Harness, NAMESPACE, ref } from './harness';

const { Secret } = owned;
const texts = mapOf(z.string(), { maxProperties: 10 }).default({}).describe('Texts.');

/** A kind whose child is a Secret, given as texts. */
const Vault = defineKind({
  group: 'test.example.com',
  version: 'v1',
  kind: 'Vault',
  plural: 'vaults',
  scope: 'Namespaced',
  description: 'A Secret.',
  spec: z.object({ texts }),
  owns: [Secret],
  children: (scope, { metadata: { name }, spec }) =>
    void new ApiObject(scope, 's', { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: spec.texts }),
});

function encoded(entries: Readonly<Record<string, string>>): object {
  return Object.fromEntries(Object.entries(entries).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));
}

/** What a client sees of the Secret, and who owns which fields of it. */
function stored(harness: Harness): { readonly data: unknown; readonly owners: object } {
  const live = harness.live(Secret, 'v');
  expect(live).not.toHaveProperty('stringData');
  const owners = managedFieldsOf(live).map(({ manager, operation, fieldsV1 }) => {
    const fields = ['data', 'stringData'].flatMap((field) =>
      Object.keys(fieldsV1?.[`f:${field}`] ?? {}).map((key) => `${field}.${key.slice(2)}`),
    );
    return [`${String(manager)} ${String(operation)}`, fields.sort().join(' ')];
  });
  return { data: live.data, owners: Object.fromEntries(owners) as object };
}

/** Another operator on the same server, which remembers nothing. */
function restarted(harness: Harness): Harness {
  const next = new Harness(Vault, harness.server);
  next.fillCaches();
  return next;
}

const written = (writes: readonly string[]): readonly string[] => writes.filter((write) => write.includes('Secret'));

describe('a Secret whose kind gives texts', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = new Harness(Vault);
    await harness.add('v', { texts: { a: '1', b: '2' } });
  });

  it('is sent, stored and owned as data', async () => {
    await harness.reconcile('v');
    expect(stored(harness)).toEqual({
      data: encoded({ a: '1', b: '2' }),
      owners: { 'kindred Update': 'data.a data.b' },
    });
    expect((await harness.reconcile('v')).writes).toEqual([]);
  });

  it('is written no more after a restart', async () => {
    await harness.reconcile('v');
    harness = restarted(harness);
    expect((await harness.reconcile('v')).writes).toEqual([]);
  });

  it.each<[string, (live: KubeObject) => KubeObject]>([
    ['a changed value', (live) => ({ ...live, data: { ...(live.data as object), a: 'eA==' } })],
    ['a key that was removed', (live) => ({ ...live, data: { b: 'Mg==' } })],
    ['a value changed through stringData', (live) => ({ ...live, stringData: { a: 'x' } })],
    ['data that was removed', (live) => ({ ...live, data: undefined })],
  ])('is corrected by hand: %s', async (_, change) => {
    await harness.reconcile('v');
    harness.server.edit(Secret, ref('v'), change);
    await harness.reconcile('v');
    expect(harness.written.at(-1)?.because).toMatch(/^data/);
    expect(stored(harness).data).toEqual(encoded({ a: '1', b: '2' }));
  });

  it('drops the keys that are no longer rendered, after a restart too', async () => {
    await harness.reconcile('v');
    harness.respec('v', { texts: { a: '1' } });
    await harness.reconcile('v');
    expect(stored(harness)).toEqual({ data: encoded({ a: '1' }), owners: { 'kindred Apply': 'data.a' } });
    harness = restarted(harness);
    harness.respec('v', { texts: { c: '3' } });
    await harness.reconcile('v');
    expect(stored(harness).data).toEqual(encoded({ c: '3' }));
    harness.respec('v', { texts: {} });
    await harness.reconcile('v');
    expect(stored(harness).data).toBeUndefined();
  });
});

describe('a Secret that an earlier version wrote as stringData', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = new Harness(Vault);
    await harness.add('v', { texts: { a: '1' } });
  });

  const fieldManager = 'kindred';

  function renderedEarlier(entries: Readonly<Record<string, string>>): KubeObject {
    const owner = harness.object('v');
    const { uid = '' } = owner.metadata;
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'v', namespace: NAMESPACE },
      stringData: entries,
    };
    return withEnvelope(body, { ownerReferences: [controllerReference(owner)], ownerUid: uid, hash: childHash(body) });
  }

  async function createdEarlier(entries: Readonly<Record<string, string>>): Promise<void> {
    await harness.server.create(Secret, renderedEarlier(entries), { fieldManager });
  }

  /** As its first change did: what was created counted as applied from then on. */
  async function changedEarlier(entries: Readonly<Record<string, string>>): Promise<void> {
    const moved = managedFieldsOf(harness.live(Secret, 'v')).map((entry) => ({ ...entry, operation: 'Apply' }));
    const patch = [{ op: 'replace', path: '/metadata/managedFields', value: moved }];
    await harness.server.patch(Secret, ref('v'), patch, { type: 'json', fieldManager });
    await harness.server.apply(Secret, renderedEarlier(entries), { fieldManager });
  }

  async function upgrade(): Promise<readonly string[]> {
    harness = restarted(harness);
    const { writes } = await harness.reconcile('v');
    expect((await harness.reconcile('v')).writes).toEqual([]);
    harness = restarted(harness);
    expect((await harness.reconcile('v')).writes).toEqual([]);
    return written(writes);
  }

  const owned = { data: encoded({ a: '1' }), owners: { 'kindred Apply': 'data.a' } };

  it('is ours as data once it has been created only: a key that is no longer rendered goes', async () => {
    await createdEarlier({ a: '1', b: '2' });
    expect(await upgrade()).toEqual(['PATCH Secret v (kindred)', 'APPLY Secret v (kindred)']);
    expect(stored(harness)).toEqual(owned);
  });

  it('is ours as data once it has been changed: a key that is no longer rendered goes', async () => {
    await createdEarlier({ a: '1', b: '2' });
    await changedEarlier({ a: '1', b: '3' });
    expect(stored(harness)).toEqual({
      data: encoded({ a: '1', b: '3' }),
      owners: { 'kindred Apply': 'stringData.a stringData.b' },
    });
    expect(await upgrade()).toEqual(['PATCH Secret v (kindred)', 'APPLY Secret v (kindred)']);
    expect(stored(harness)).toEqual(owned);
  });

  it('loses the keys that the earlier version left behind itself', async () => {
    await createdEarlier({ a: '1', b: '2' });
    await changedEarlier({ a: '1', b: '3' });
    await changedEarlier({ a: '1' });
    expect(stored(harness).data).toEqual(encoded({ a: '1', b: '3' }));
    await upgrade();
    expect(stored(harness)).toEqual(owned);
  });

  it("keeps another writer's key", async () => {
    await createdEarlier({ a: '1', b: '2' });
    await changedEarlier({ a: '1', b: '2' });
    harness.server.edit(Secret, ref('v'), (live) => ({ ...live, data: { ...(live.data as object), other: 'eA==' } }));
    await upgrade();
    expect(stored(harness)).toEqual({
      data: encoded({ a: '1', other: 'x' }),
      owners: { 'kindred Apply': 'data.a', 'kubectl Update': 'data.other' },
    });
  });

  it('is corrected where it was changed by hand, which the earlier version did not see', async () => {
    await createdEarlier({ a: '1' });
    await changedEarlier({ a: '1' });
    harness.server.edit(Secret, ref('v'), (live) => ({ ...live, data: { a: 'eA==' } }));
    await upgrade();
    expect(stored(harness)).toEqual(owned);
  });

  it('is written by the earlier version again after a step back, and ours once more after a step forward', async () => {
    await createdEarlier({ a: '1' });
    await upgrade();
    await changedEarlier({ a: '1', b: '2' });
    expect(stored(harness).data).toEqual(encoded({ a: '1', b: '2' }));
    await upgrade();
    expect(stored(harness)).toEqual(owned);
  });
});
