import { gatedClient } from '../../operator/src/gated-client';
import type { ApiClient, RequestOptions } from '../../operator/src/client/api-client';
import { TransportError } from '../../operator/src/client/errors';
import { owned } from '../../constructs/core/owned';
import { MemoryApiServer } from './support/memory-api-server';

const { ConfigMap } = owned;
const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'n' } };
const options = { fieldManager: 'kindred' };

/** A client whose writes end only when they are given up. */
function hanging(seen: RequestOptions[] = []): ApiClient {
  const hang = async (given: RequestOptions): Promise<never> => {
    seen.push(given);
    return new Promise((_resolve, reject) => {
      given.signal?.addEventListener('abort', () => reject(given.signal?.reason as Error));
    });
  };
  const client: Partial<ApiClient> = {
    create: async (_type, _body, given) => hang(given),
    delete: async (_type, _ref, given = {}) => hang(given),
  };
  return client as ApiClient;
}

describe('a gated client', () => {
  it('asks before each write, counts it, and asks for no read', async () => {
    const asked: string[] = [];
    let mayWrite = true;
    const client = gatedClient(new MemoryApiServer(), {
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

  it('gives a write up when its time is over, however often it was tried until then', async () => {
    const seen: RequestOptions[] = [];
    const client = gatedClient(hanging(seen), {
      assertMayWrite: () => undefined,
      onWrite: () => undefined,
      timeoutMs: () => 20,
    });
    await expect(client.create(ConfigMap, body, options)).rejects.toBeInstanceOf(TransportError);
    await expect(client.delete(ConfigMap, { name: 'a' })).rejects.toThrow('given up after 20 ms');
    expect(seen[0]).toMatchObject({ ...options, timeoutMs: 20 });
  });

  it("heeds the caller's signal as well", async () => {
    const client = gatedClient(hanging(), {
      assertMayWrite: () => undefined,
      onWrite: () => undefined,
      timeoutMs: () => 10_000,
    });
    const abort = new AbortController();
    const write = client.create(ConfigMap, body, { ...options, signal: abort.signal });
    abort.abort(new Error('enough'));
    await expect(write).rejects.toThrow('enough');
  });
});
