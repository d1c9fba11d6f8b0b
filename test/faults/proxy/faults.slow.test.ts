import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { useControlPlane } from '../../support/use-control-plane';
import { kubectl } from '../../../testing/kubectl';
import { waitFor } from '../../../testing/wait-for';
import type { ApiClient, WatchEvent, WatchOptions } from '../../../operator/client/api-client';
import { ApiError, TransportError } from '../../../operator/client/errors';
import { createApiClient } from '../../../operator/client/http-api-client';
import { loadClusterAccess } from '../../../operator/client/kubeconfig';
import { kubeconfigClient } from '../../../testing';
import { holdTimeouts } from '../../operator/support/held-timeouts';
import { FaultProxy } from '../../../testing/fault-proxy/fault-proxy';
import {
  seededFraction,
  conflict,
  cutResponse,
  cutEvents,
  delayedEvents,
  gone,
  goneInStream,
  internalError,
  dropResponse,
  dropEvent,
  limitPageSize,
  resetBefore,
  resetMidway,
  silentWatch,
  slow,
  withProbability,
  staleReads,
  stall,
  tooManyRequests,
  truncatedResponse,
  unavailable,
  withoutStreamingLists,
} from '../../../testing/fault-proxy/faults';

const CONFIG_MAPS: ResourceType = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', scope: 'Namespaced' };
const ACCOUNT = { namespace: 'default', name: 'tester' };
const MANAGER = { fieldManager: 'tester' };

const plane = useControlPlane({ components: 'api' });
let proxy: FaultProxy;
/** Straight to the server. */
let admin: ApiClient;
/** Through the proxy; asked for once, so that each fault shows. */
let client: ApiClient;
let number = 0;

beforeAll(async () => {
  const { namespace, name } = ACCOUNT;
  await kubectl(plane, ['create', 'serviceaccount', name, `--namespace=${namespace}`]);
  const binding = ['--clusterrole=cluster-admin', `--serviceaccount=${namespace}:${name}`];
  await kubectl(plane, ['create', 'clusterrolebinding', name, ...binding]);
  proxy = await FaultProxy.start(plane.adminKubeconfig);
  admin = await kubeconfigClient(plane.adminKubeconfig);
  const access = loadClusterAccess({ path: proxy.kubeconfig(await plane.kubeconfigFor(ACCOUNT)) });
  client = createApiClient(access, { retry: { maxAttempts: 1 } });
});
afterEach(async () => {
  jest.useRealTimers();
  proxy.fault = (exchange) => exchange.pass();
  proxy.dropConnections();
  // Other than a create, it may be repeated: it finds the connections that were cut.
  await waitFor(() => client.getPath('/version'), { describe: 'a sound connection' });
});
afterAll(async () => {
  await client.close();
  await admin.close();
  await proxy.close();
});

const at = (name: string) => ({ namespace: 'default', name });
const configMap = (name: string, data = 'first'): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: at(name) },
  data: { text: data },
});
const aName = (): string => `object-${String((number += 1))}`;
const made = (name = aName()): Promise<KubeObject> => admin.create(CONFIG_MAPS, configMap(name), MANAGER);
const changed = (name: string, data: string): Promise<KubeObject> =>
  admin.apply(CONFIG_MAPS, configMap(name, data), MANAGER);

/** What a request fails with. */
async function failure(request: Promise<unknown>): Promise<unknown> {
  const outcome = await request.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ('error' in outcome) return outcome.error;
  throw new Error(`it succeeded with ${JSON.stringify(outcome.value)}`);
}

/** Follows one ConfigMap from a version on, to the end of the watch or its failure. */
function follow(object: KubeObject, options: Partial<WatchOptions> = {}) {
  const seen: (WatchEvent & { readonly at: number })[] = [];
  const stop = new AbortController();
  const { name, namespace = '', resourceVersion = '' } = object.metadata;
  const watched = { namespace, fieldSelector: `metadata.name=${name}`, resourceVersion };
  let open = false;
  const run = async (): Promise<unknown> => {
    const onOpen = (): void => void (open = true);
    const bounds = { timeoutSeconds: 60, idleTimeoutMs: 60_000, signal: stop.signal, onOpen };
    try {
      for await (const event of client.watch(CONFIG_MAPS, { ...watched, ...bounds, ...options }))
        seen.push({ ...event, at: Date.now() });
      return undefined;
    } catch (error) {
      return error;
    }
  };
  const ended = run();
  const opened = (): Promise<unknown> => waitFor(() => open, { describe: 'the watch to be open' });
  return { seen, ended, opened, stop: () => stop.abort() };
}

const texts = (events: readonly WatchEvent[]): unknown[] =>
  events.map(({ object }) => (object['data'] as { text: string }).text);

test('reset before: an error, and no effect', async () => {
  proxy.fault = resetBefore;
  const name = aName();
  expect(await failure(client.create(CONFIG_MAPS, configMap(name), MANAGER))).toBeInstanceOf(TransportError);
  expect(await admin.get(CONFIG_MAPS, at(name))).toBeUndefined();
});

test('reset midway: an error, whatever the server did', async () => {
  proxy.fault = resetMidway;
  expect(await failure(client.create(CONFIG_MAPS, configMap(aName()), MANAGER))).toBeInstanceOf(TransportError);
});

test('a lost answer: an error, though the write took effect; a watch ends before its first event', async () => {
  proxy.fault = dropResponse;
  const name = aName();
  expect(await failure(client.create(CONFIG_MAPS, configMap(name), MANAGER))).toBeInstanceOf(TransportError);
  const object = await admin.get(CONFIG_MAPS, at(name));
  expect(object).toMatchObject({ data: { text: 'first' } });
  expect(await follow(await made()).ended).toBeInstanceOf(TransportError);
});

test('stalled: no answer until the client gives up, and no effect; a watch opens and stays silent', async () => {
  proxy.fault = stall;
  const name = aName();
  holdTimeouts();
  const before = proxy.requests.length;
  const asked = failure(client.create(CONFIG_MAPS, configMap(name), { ...MANAGER, timeoutMs: 200 }));
  await waitFor(() => proxy.requests.length > before, { describe: 'the request to be there' });
  jest.advanceTimersByTime(200);
  expect(String(await asked)).toContain('no whole answer within 0.2 s');
  expect(await admin.get(CONFIG_MAPS, at(name))).toBeUndefined();

  for (const fault of [stall, silentWatch]) {
    proxy.fault = fault;
    const object = await made();
    const watch = follow(object, { idleTimeoutMs: 300 });
    await watch.opened();
    await changed(object.metadata.name, 'unseen');
    jest.advanceTimersByTime(300);
    expect(String(await watch.ended)).toContain('nothing arrived for 0.3 s');
    expect(watch.seen).toEqual([]);
  }
});

test('slow: late and in pieces, but whole', async () => {
  proxy.fault = slow({ delayMs: 100, bytes: 40, everyMs: 5 });
  const object = await made();
  const began = Date.now();
  const got = await client.get(CONFIG_MAPS, at(object.metadata.name));
  const pieces = Math.floor(JSON.stringify(object).length / 40);
  expect(got?.metadata.uid).toBe(object.metadata.uid);
  expect(Date.now() - began).toBeGreaterThan(100 + pieces * 4);
});

test('cut: an answer ends in its middle, a watch in an event', async () => {
  const object = await made();
  const { name } = object.metadata;
  proxy.fault = cutResponse;
  expect(await failure(client.get(CONFIG_MAPS, at(name)))).toBeInstanceOf(TransportError);
  expect(await failure(client.list(CONFIG_MAPS, {}))).toBeInstanceOf(TransportError);
  for (const fault of [cutEvents(1), cutEvents(1, { cleanly: true })]) {
    proxy.fault = fault;
    const watch = follow(await admin.get(CONFIG_MAPS, at(name)).then((live) => live ?? object));
    await changed(name, `whole ${String(number++)}`);
    await changed(name, 'half');
    expect(await watch.ended).toBeInstanceOf(TransportError);
    expect(texts(watch.seen)).toEqual([expect.stringContaining('whole')]);
  }
});

test('truncated: HTTP is content, JSON is not', async () => {
  const { name } = (await made()).metadata;
  proxy.fault = truncatedResponse;
  expect(String(await failure(client.list(CONFIG_MAPS, {})))).toContain('is not JSON');
  expect(String(await failure(client.get(CONFIG_MAPS, at(name))))).toContain('is not JSON');
  const watch = follow(await made());
  await changed(watchedName(), 'half');
  expect(String(await watch.ended)).toContain('cut on the way');
});

/** The name that was made last. */
const watchedName = (): string => `object-${String(number)}`;

test.each([
  ['429', tooManyRequests(3), 429, 3],
  ['500', internalError, 500, undefined],
  ['503', unavailable(), 503, undefined],
  ['503 with Retry-After', unavailable(2), 503, 2],
] as const)('%s, and no effect', async (_what, fault, code, retryAfterSeconds) => {
  proxy.fault = fault;
  const name = aName();
  const refused = (await failure(client.create(CONFIG_MAPS, configMap(name), MANAGER))) as ApiError;
  expect(refused).toBeInstanceOf(ApiError);
  expect([refused.code, refused.status.retryAfterSeconds]).toEqual([code, retryAfterSeconds]);
  expect(await admin.get(CONFIG_MAPS, at(name))).toBeUndefined();
});

test('conflict: for writes, not for reads', async () => {
  const { name } = (await made()).metadata;
  proxy.fault = conflict;
  expect(await failure(client.apply(CONFIG_MAPS, configMap(name, 'mine'), MANAGER))).toMatchObject({ code: 409 });
  expect(await client.get(CONFIG_MAPS, at(name))).toMatchObject({ data: { text: 'first' } });
});

test('gone: for a watch from the past and for further pages; in the stream, after whole events', async () => {
  await Promise.all([made(), made(), made()]);
  const object = await made();
  proxy.fault = gone;
  expect(await follow(object).ended).toMatchObject({ code: 410, reason: 'Expired' });
  const { continueToken = '' } = await client.list(CONFIG_MAPS, { limit: 2 });
  expect(await failure(client.list(CONFIG_MAPS, { limit: 2, continueToken }))).toMatchObject({ code: 410 });

  proxy.fault = goneInStream(1);
  const watch = follow(object);
  await changed(object.metadata.name, 'whole');
  await changed(object.metadata.name, 'unseen');
  expect(await watch.ended).toMatchObject({ code: 410, reason: 'Expired' });
  expect(texts(watch.seen)).toEqual(['whole']);
});

test('stale reads: what stood at the revision stands, and what was not there yet is not found', async () => {
  const before = await made();
  const { name, resourceVersion = '' } = before.metadata;
  const after = await made();
  await changed(name, 'second');
  proxy.fault = staleReads(() => resourceVersion);
  expect(await client.get(CONFIG_MAPS, at(name))).toEqual(before);
  expect(await client.get(CONFIG_MAPS, at(after.metadata.name))).toBeUndefined();
  const { items } = await client.list(CONFIG_MAPS, { namespace: 'default' });
  expect(items.filter(({ metadata }) => metadata.name === name)).toEqual([before]);
  expect(items.map(({ metadata }) => metadata.name)).not.toContain(after.metadata.name);
  // Writes go on.
  expect(await client.apply(CONFIG_MAPS, configMap(name, 'third'), MANAGER)).toMatchObject({ data: { text: 'third' } });
});

test('delayed events: in their order, this much later, while reads and writes go on', async () => {
  const object = await made();
  const { name } = object.metadata;
  proxy.fault = delayedEvents(300);
  const watch = follow(object);
  await watch.opened();
  const written: number[] = [];
  for (const text of ['one', 'two']) {
    written.push(Date.now());
    await changed(name, text);
    expect(await client.get(CONFIG_MAPS, at(name))).toMatchObject({ data: { text } });
  }
  await waitFor(() => watch.seen.length === 2, { describe: 'both events' });
  expect(texts(watch.seen)).toEqual(['one', 'two']);
  for (const [index, { at: seenAt }] of watch.seen.entries())
    expect(seenAt - (written[index] ?? 0)).toBeGreaterThanOrEqual(295);
  watch.stop();
});

test('a lost event: the first that fits, and no other', async () => {
  const object = await made();
  const { name } = object.metadata;
  proxy.fault = dropEvent((event) => event.type === 'MODIFIED' && texts([event])[0] !== 'one');
  const watch = follow(object);
  for (const text of ['one', 'two', 'three']) await changed(name, text);
  await waitFor(() => watch.seen.length === 2, { describe: 'the other events' });
  expect(texts(watch.seen)).toEqual(['one', 'three']);
  watch.stop();
});

test('small pages, the further ones hurt or not; no streaming lists', async () => {
  await Promise.all([made(), made(), made()]);
  proxy.fault = limitPageSize(2);
  const { items, continueToken = '' } = await client.list(CONFIG_MAPS, { limit: 500 });
  expect(items).toHaveLength(2);
  expect((await client.list(CONFIG_MAPS, { limit: 500, continueToken })).items.length).toBeLessThanOrEqual(2);
  proxy.fault = limitPageSize(2, gone);
  expect(await failure(client.list(CONFIG_MAPS, { limit: 500, continueToken }))).toMatchObject({ code: 410 });
  proxy.fault = withoutStreamingLists(gone);
  const streaming = follow(await made(), { sendInitialEvents: true });
  expect(await streaming.ended).toMatchObject({ code: 400 });
});

test('sometimes: a share of the requests, the same ones for the same seed', async () => {
  const { name } = (await made()).metadata;
  const hurt = async (seed: string): Promise<string> => {
    proxy.fault = withProbability(seed, 0.3, internalError);
    const outcomes: string[] = [];
    for (let i = 0; i < 40; i += 1)
      outcomes.push(
        await client.get(CONFIG_MAPS, at(name)).then(
          () => '.',
          () => 'x',
        ),
      );
    return outcomes.join('');
  };
  const first = await hurt('one');
  expect(first.replaceAll('.', '').length).toBeGreaterThan(4);
  expect(first.replaceAll('x', '').length).toBeGreaterThan(14);
  expect(await hurt('one')).toBe(first);
  expect(await hurt('two')).not.toBe(first);
  const chances = Array.from({ length: 1_000 }, (_, i) => seededFraction(String(i)));
  expect(chances.filter((value) => value < 0.25).length).toBeGreaterThan(200);
  expect(chances.filter((value) => value < 0.25).length).toBeLessThan(300);
});
