import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned } from '../../constructs/kube/resource-type';
import { ownsField } from '../../operator/apply/managed-fields';
import { managedFieldsOf } from '../../operator/informer/field-ownership';
import { MemoryApiServer } from '../../testing/api-server/memory-api-server';

const { Deployment, ConfigMap, Secret } = owned;
const ref = { name: 'd', namespace: 'n' };
const A = { fieldManager: 'a' };
const B = { fieldManager: 'b' };

function deployment(spec: object, metadata: object = {}): KubeObject {
  const template = { metadata: { labels: { app: 'd' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { ...ref, ...metadata }, spec: { template, ...spec } };
}

/** What was tried on a real API server, and what the memory must therefore do. */
describe('MemoryApiServer', () => {
  let server: MemoryApiServer;

  beforeEach(() => {
    server = new MemoryApiServer();
  });

  const replicas = (): unknown => (server.peek(Deployment, ref)?.spec as { replicas?: number } | undefined)?.replicas;

  it('drops what a manager applied and applies no more, to its default; what it created by POST stays', async () => {
    await server.create(Deployment, deployment({ replicas: 3, paused: true }), A);
    await server.apply(Deployment, deployment({}), A);
    expect([replicas(), server.peek(Deployment, ref)?.spec]).toEqual([3, expect.objectContaining({ paused: true })]);
    await server.apply(Deployment, deployment({ replicas: 3 }), A);
    await server.apply(Deployment, deployment({}), A);
    expect(replicas()).toBe(3);
    server.edit(Deployment, ref, (live) => ({ ...live, metadata: { ...live.metadata, managedFields: [] } as never }));
    await server.apply(Deployment, deployment({ replicas: 3 }), A);
    await server.apply(Deployment, deployment({}), A);
    expect(replicas()).toBe(1);
  });

  it('keeps what another manager owns too, and lets force take it', async () => {
    await server.apply(Deployment, deployment({ replicas: 3 }), A);
    await server.apply(Deployment, deployment({ replicas: 3 }), B);
    await server.apply(Deployment, deployment({}), A);
    expect(replicas()).toBe(3);
    await expect(server.apply(Deployment, deployment({ replicas: 4 }), { ...A, force: false })).rejects.toMatchObject({
      code: 409,
    });
    const live = await server.apply(Deployment, deployment({ replicas: 4 }), A);
    expect(ownsField(managedFieldsOf(live), 'b', ['spec', 'replicas'])).toBe(false);
  });

  it('applies nothing to an object of another uid, nor to none', async () => {
    const body = deployment({}, { uid: 'x' });
    await expect(server.apply(Deployment, body, A)).rejects.toMatchObject({ reason: 'Conflict' });
    await server.create(Deployment, deployment({}), A);
    await expect(server.apply(Deployment, body, A)).rejects.toMatchObject({ reason: 'Conflict' });
    await expect(server.create(Deployment, deployment({}), A)).rejects.toMatchObject({ reason: 'AlreadyExists' });
  });

  it('counts generations by spec, and versions by any change', async () => {
    const created = await server.create(Deployment, deployment({}), A);
    const same = await server.apply(Deployment, deployment({}), A);
    const again = await server.apply(Deployment, deployment({}), A);
    expect([same.metadata.generation, again.metadata.resourceVersion]).toEqual([1, same.metadata.resourceVersion]);
    server.setStatus(Deployment, ref, { replicas: 1 });
    server.scale(Deployment, ref, 5);
    const { generation, resourceVersion } = server.peek(Deployment, ref)?.metadata ?? {};
    expect(generation).toBe(2);
    expect(Number(resourceVersion)).toBeGreaterThan(Number(created.metadata.resourceVersion));
  });

  it("merges a Secret's stringData into data, and tracks it as data only where it was no apply", async () => {
    const secret = (fields: object): KubeObject => ({ apiVersion: 'v1', kind: 'Secret', metadata: ref, ...fields });
    const fields = (): unknown =>
      managedFieldsOf(server.peek(Secret, ref) ?? secret({})).map((entry) => entry.fieldsV1);
    await server.create(Secret, secret({ data: { a: 'eA==', c: 'eA==' }, stringData: { a: '1', b: '2' } }), A);
    expect(server.peek(Secret, ref)).toMatchObject({ data: { a: 'MQ==', b: 'Mg==', c: 'eA==' } });
    expect(server.peek(Secret, ref)).not.toHaveProperty('stringData');
    expect(fields()).toEqual([{ 'f:data': { 'f:a': {}, 'f:b': {}, 'f:c': {} } }]);
    await server.patch(Secret, ref, { stringData: { a: '3' } }, { ...A, type: 'merge' });
    expect(server.peek(Secret, ref)).toMatchObject({ data: { a: 'Mw==', b: 'Mg==', c: 'eA==' } });
    const { metadata } = await server.apply(Secret, secret({ stringData: { b: '4' } }), B);
    expect(fields()).toContainEqual({ 'f:stringData': { 'f:b': {} } });
    expect((await server.apply(Secret, secret({ stringData: { b: '4' } }), B)).metadata).toEqual(metadata);
    expect((await server.apply(Secret, secret({}), B)).data).toEqual({ a: 'Mw==', b: 'NA==', c: 'eA==' });
    expect(
      await server.create(Secret, { ...secret({ stringData: {} }), metadata: { name: 'e' } }, A),
    ).not.toHaveProperty('data');
  });

  it('deletes at once, after finalizers, or with its dependents, and only what is meant', async () => {
    const { metadata } = await server.create(Deployment, deployment({}), A);
    const owner = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      name: 'd',
      uid: metadata.uid ?? '',
      blockOwnerDeletion: true,
    };
    const map = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'm', namespace: 'n', ownerReferences: [owner] },
    };
    await server.create(ConfigMap, map, A);
    await expect(server.delete(Deployment, ref, { uid: 'x' })).rejects.toMatchObject({ code: 409 });
    await expect(server.delete(Deployment, ref, { resourceVersion: '1' })).rejects.toMatchObject({ code: 409 });
    await server.delete(Deployment, ref, { propagation: 'Foreground' });
    expect(server.peek(Deployment, ref)?.metadata.deletionTimestamp).toBeDefined();
    server.collectGarbage();
    expect([server.peek(Deployment, ref), server.all(ConfigMap)]).toEqual([undefined, []]);
    expect(await server.delete(Deployment, ref)).toBe(false);
  });
});
