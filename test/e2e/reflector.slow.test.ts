import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import { useControlPlane } from '../support/use-control-plane';
import { waitFor } from '../../testing/wait-for';
import { ObjectCache } from '../../operator/informer/object-cache';
import { Reflector } from '../../operator/informer/reflector';
import type { ReflectorOptions } from '../../operator/informer/reflector-options';
import type { ApiClient } from '../../operator/client/api-client';
import { staticAccess, type ClusterAccess, type Credentials } from '../../operator/client/cluster-access';
import { ApiError, TransportError } from '../../operator/client/errors';
import { createApiClient } from '../../operator/client/http-api-client';
import { loadClusterAccess } from '../../operator/client/kubeconfig';
import type { ResponseObservation } from '../../operator/client/requester';

const CONFIG_MAPS: ResourceType = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', scope: 'Namespaced' };
const NAMESPACES: ResourceType = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', scope: 'Cluster' };
const MANAGER = { fieldManager: 'kindred' };

const plane = useControlPlane({ components: 'api' });
let client: ApiClient;
let responses: ResponseObservation[];
let reflectors: Reflector[];

beforeEach(() => {
  responses = [];
  reflectors = [];
  client = createApiClient(loadClusterAccess({ path: plane.adminKubeconfig }), {
    onResponse: (response) => responses.push(response),
  });
});

afterEach(async () => {
  await Promise.all(reflectors.map((reflector) => reflector.stop()));
  await client.close();
});

function configMap(namespace: string, name: string, data: Record<string, string> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data };
}

async function namespace(name: string): Promise<string> {
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, MANAGER);
  return name;
}

async function reflect(
  options: Partial<ReflectorOptions> = {},
): Promise<{ cache: ObjectCache; reflector: Reflector; errors: unknown[] }> {
  const cache = new ObjectCache(CONFIG_MAPS);
  const errors: unknown[] = [];
  const onError = (error: unknown): unknown => errors.push(error);
  const reflector = new Reflector({ client, type: CONFIG_MAPS, cache, onError, ...options });
  reflectors.push(reflector);
  reflector.start();
  await reflector.synced();
  return { cache, reflector, errors };
}

/** Waits until the cache holds exactly what the server does. */
async function caughtUp(cache: ObjectCache, options: { readonly namespace?: string } = {}): Promise<void> {
  const { items } = await client.list(CONFIG_MAPS, options);
  const show = (objects: readonly KubeObject[]): string[] =>
    objects
      .map(({ metadata }) => `${metadata.namespace}/${metadata.name}@${metadata.uid}@${metadata.resourceVersion}`)
      .sort();
  await waitFor(() => JSON.stringify(show(cache.list().map(({ object }) => object))) === JSON.stringify(show(items)), {
    describe: 'the cache equals the server',
  });
}

test('follows creates, changes and deletions, in one streaming list and watch', async () => {
  const space = await namespace('follow');
  await client.create(CONFIG_MAPS, configMap(space, 'before', { a: '1' }), MANAGER);
  const { cache, reflector, errors } = await reflect({ namespace: space });
  expect(cache.get({ namespace: space, name: 'before' })).toMatchObject({
    object: { apiVersion: 'v1', kind: 'ConfigMap' },
    facts: { createdByUpdate: true },
  });
  for (let index = 0; index < 20; index++) await client.create(CONFIG_MAPS, configMap(space, `a-${index}`), MANAGER);
  await client.apply(CONFIG_MAPS, configMap(space, 'a-1', { changed: 'yes' }), MANAGER);
  await client.delete(CONFIG_MAPS, { namespace: space, name: 'a-2' });
  await client.delete(CONFIG_MAPS, { namespace: space, name: 'before' });
  await caughtUp(cache, { namespace: space });
  expect(errors).toEqual([]);
  expect(reflector.state()).toMatchObject({ lists: 1, watching: true });
  expect(await reflector.checkConsistency()).toMatchObject({ missed: 0, conclusive: true, checked: 19 });
});

test('resumes after a planned end, without a list', async () => {
  const space = await namespace('resume');
  const { cache, reflector, errors } = await reflect({
    namespace: space,
    watchTimeoutSeconds: [1, 1],
    // The server's second begins before its answer is seen here, and on a busy machine long before.
    minWatchMs: 0,
  });
  for (let index = 0; index < 12; index++) {
    await client.create(CONFIG_MAPS, configMap(space, `a-${index}`), MANAGER);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  await caughtUp(cache, { namespace: space });
  expect(reflector.state().lists).toBe(1);
  expect(errors).toEqual([]);
  expect(responses.filter(({ method }) => method === 'GET').length).toBeGreaterThan(2);
});

test('tracked writes raise no event; a change by somebody else does', async () => {
  const space = await namespace('writes');
  const { cache } = await reflect({ namespace: space });
  const told: string[] = [];
  cache.addEventHandler(({ type, object }) => told.push(`${type} ${object.object.metadata.name}`));
  for (let index = 0; index < 50; index++) {
    const ref = { namespace: space, name: 'mine' };
    const body = configMap(space, 'mine', { index: String(index) });
    const send = (): Promise<KubeObject> =>
      index === 0 ? client.create(CONFIG_MAPS, body, MANAGER) : client.apply(CONFIG_MAPS, body, MANAGER);
    const written = await cache.trackWrite(ref, send);
    expect(cache.get(ref)?.object.metadata.resourceVersion).toBe(written.metadata.resourceVersion);
  }
  await client.create(CONFIG_MAPS, configMap(space, 'theirs'), { fieldManager: 'somebody' });
  await waitFor(() => told.length > 0, { describe: "somebody else's object is told" });
  expect(told).toEqual(['added theirs']);
});

test('a compaction and a restarted API server: a new list, and the cache equals the server', async () => {
  const { cache, reflector, errors } = await reflect({ backoff: { initialMs: 50, maxMs: 500 } });
  const space = await namespace('compact');
  await client.create(CONFIG_MAPS, configMap(space, 'kept'), MANAGER);
  await client.create(CONFIG_MAPS, configMap(space, 'gone'), MANAGER);
  await caughtUp(cache);
  const before = reflector.state();
  await plane.faults.compactEtcd();
  await client.delete(CONFIG_MAPS, { namespace: space, name: 'gone' });
  await client.create(CONFIG_MAPS, configMap(space, 'new'), MANAGER);
  await waitFor(() => reflector.state().watching, { describe: 'the watch is open again' });
  await caughtUp(cache);
  expect(errors.length).toBeGreaterThan(0);
  expect(errors.length).toBeLessThan(40);
  expect(reflector.state().lists).toBe(before.lists + 1);
  expect(await reflector.checkConsistency()).toMatchObject({ missed: 0, conclusive: true });
}, 60_000);

test('an API server that freezes is noticed by its silence', async () => {
  const { cache, reflector, errors } = await reflect({ idleTimeoutMs: 1500, backoff: { initialMs: 50, maxMs: 500 } });
  const space = await namespace('freeze');
  plane.faults.pauseApiServer();
  try {
    await waitFor(() => errors.some((error) => String(error).includes('nothing arrived')), {
      describe: 'silence is noticed',
    });
    expect(reflector.state().watching).toBe(false);
  } finally {
    plane.faults.resumeApiServer();
  }
  await client.create(CONFIG_MAPS, configMap(space, 'after'), MANAGER);
  await caughtUp(cache);
  expect(reflector.state().lists).toBe(1);
}, 60_000);

test('an API server that crashes twice under writes: nothing is missed', async () => {
  const space = await namespace('crash');
  const { cache, reflector } = await reflect({ namespace: space, backoff: { initialMs: 50, maxMs: 500 } });
  let writing = true;
  let written = 0;
  const writer = async (): Promise<void> => {
    for (let index = 0; writing; index++) {
      const name = `a-${index % 20}`;
      const body = configMap(space, name, { index: String(index) });
      try {
        if (index % 7 === 6) await client.delete(CONFIG_MAPS, { namespace: space, name });
        else await cache.trackWrite({ namespace: space, name }, () => client.apply(CONFIG_MAPS, body, MANAGER));
        written++;
      } catch (error) {
        // The write may or may not have taken effect; that is what the watch is for.
        if (!(error instanceof TransportError) && !(error instanceof ApiError)) throw error;
      }
    }
  };
  const writers = Promise.all([writer(), writer()]);
  await plane.faults.restartApiServer();
  await waitFor(() => reflector.state().watching, { describe: 'the watch is open again' });
  await plane.faults.restartApiServer();
  await waitFor(() => reflector.state().watching, { describe: 'the watch is open again' });
  const before = written;
  await waitFor(() => written > before + 20, { describe: 'writes succeed again' });
  writing = false;
  await writers;
  await caughtUp(cache, { namespace: space });
  expect(await reflector.checkConsistency()).toMatchObject({ missed: 0, conclusive: true });
}, 60_000);

test('pages', async () => {
  const space = await namespace('pages');
  for (let index = 0; index < 7; index++) await client.create(CONFIG_MAPS, configMap(space, `a-${index}`), MANAGER);
  const { cache } = await reflect({ namespace: space, pagedList: true, pageSize: 3 });
  expect(cache.size).toBe(7);
  await client.create(CONFIG_MAPS, configMap(space, 'later'), MANAGER);
  await caughtUp(cache, { namespace: space });
});

test('the server speaks for itself: unknown fields, names taken, preconditions', async () => {
  const space = await namespace('errors');
  const created = await client.create(CONFIG_MAPS, configMap(space, 'a'), MANAGER);
  await expect(client.create(CONFIG_MAPS, configMap(space, 'a'), MANAGER)).rejects.toMatchObject({
    reason: 'AlreadyExists',
  });
  const unknown = { ...configMap(space, 'b'), spec: {} };
  await expect(client.create(CONFIG_MAPS, unknown, MANAGER)).rejects.toThrow(/unknown field "spec"/);
  await expect(client.apply(CONFIG_MAPS, unknown, MANAGER)).rejects.toThrow(/spec: field not declared in schema/);
  const ref = { namespace: space, name: 'a' };
  await expect(client.delete(CONFIG_MAPS, ref, { uid: 'other' })).rejects.toBeInstanceOf(ApiError);
  expect(await client.delete(CONFIG_MAPS, ref, { uid: created.metadata.uid! })).toBe(true);
  expect(await client.delete(CONFIG_MAPS, ref)).toBe(false);
  expect(await client.get(CONFIG_MAPS, ref)).toBeUndefined();
  expect(await client.getPath('/version')).toMatchObject({ gitVersion: plane.version });
});

describe('credentials', () => {
  async function credentials(): Promise<Credentials> {
    return loadClusterAccess({ path: plane.adminKubeconfig }).credentials(false);
  }

  async function use<T>(access: ClusterAccess, call: (other: ApiClient) => Promise<T>): Promise<T> {
    const other = createApiClient(access);
    try {
      return await call(other);
    } finally {
      await other.close();
    }
  }

  test('a client certificate that comes after a refused token goes over new connections', async () => {
    const { tls } = await credentials();
    const asked: boolean[] = [];
    const access: ClusterAccess = {
      server: plane.url,
      credentials: (rejected) => {
        asked.push(rejected);
        const { ca } = tls ?? {};
        if (rejected) return Promise.resolve({ headers: {}, tls: tls! });
        return Promise.resolve({ headers: { authorization: 'Bearer stale' }, tls: { ca: ca! } });
      },
    };
    const page = await use(access, (other) => other.list(NAMESPACES, { limit: 1 }));
    expect(page.items).toHaveLength(1);
    expect(asked).toEqual([false, true]);
  });

  test('a server that is not trusted: the error says what to check', async () => {
    const { tls } = await credentials();
    const distrusting = staticAccess(plane.url, { headers: {}, tls: { cert: tls!.cert!, key: tls!.key! } });
    await expect(use(distrusting, (other) => other.list(NAMESPACES))).rejects.toThrow(
      /is not trusted; check certificate-authority-data/,
    );
  });
});
