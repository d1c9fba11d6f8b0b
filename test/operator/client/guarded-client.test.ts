import { guardWrites, type ApiClient, type RequestOptions } from '../../../operator/client/api-client';
import { owned } from '../../../constructs/kube/resource-type';
import { MemoryApiServer } from '../../../testing/api-server/memory-api-server';

const { ConfigMap } = owned;
const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'n' } };
const options = { fieldManager: 'kindred' };

describe('a gated client', () => {
  it('asks before each write, counts it, and asks for no read', async () => {
    const asked: string[] = [];
    let mayWrite = true;
    const client = guardWrites(new MemoryApiServer(), {
      assertMayWrite: () => {
        if (!mayWrite) throw new Error('does not lead');
      },
      onWrite: (verb, type) => asked.push(`${verb} ${type.kind}`),
    });
    await client.create(ConfigMap, body, options);
    await client.apply(ConfigMap, body, options);
    mayWrite = false;
    await expect(client.delete(ConfigMap, { name: 'a', namespace: 'n' })).rejects.toThrow('does not lead');
    expect(await client.get(ConfigMap, { name: 'a', namespace: 'n' })).toBeDefined();
    expect(asked).toEqual(['create ConfigMap', 'apply ConfigMap']);
  });

  it('bounds every write, and leaves its other options alone', async () => {
    const seen: (RequestOptions | undefined)[] = [];
    const inner: Partial<ApiClient> = {
      create: async (_type, sent, given) => Promise.resolve(seen.push(given)).then(() => sent),
      delete: async (_type, _ref, given) => Promise.resolve(seen.push(given)).then(() => true),
    };
    let withinMs = 20;
    const client = guardWrites(inner as ApiClient, {
      assertMayWrite: () => undefined,
      onWrite: () => undefined,
      withinMs: () => withinMs,
    });
    const { signal } = new AbortController();
    await client.create(ConfigMap, body, { ...options, signal });
    withinMs = 10;
    await client.delete(ConfigMap, { name: 'a' });
    expect(seen).toEqual([{ ...options, signal, withinMs: 20 }, { withinMs: 10 }]);
  });
});
