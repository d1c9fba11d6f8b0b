import { z } from 'zod';
import { defineKind, type AnyKind } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned } from '../../constructs/kube/resource-type';
import { withDefaults } from '../../constructs/kind/render';
import { PlanError, runPlans, type PlanRunner } from '../../operator';
import { createLogger } from '../../operator/process/logger';
import type { Effects, EffectsResult } from '../../operator/reconcile/context';
import { MemoryApiServer } from '../../testing/api-server/memory-api-server';
import { eventually } from './support/eventually';

const common = { group: 'example.com', version: 'v1', description: 'Something outside.', owns: [] };
const spec = z.object({
  size: z.int32().default(1).describe('How large.'),
  from: z.string().optional().describe('Secret that the plan reads, as NAMESPACE/NAME.'),
});
const make = {
  name: 'make',
  phase: 'apply',
  plan: 'bucket.make',
  input: ({ spec: { size, from } }: { spec: { size: number; from?: string | undefined } }) => ({ size, from }),
  timeoutSeconds: 60,
  maxAttempts: () => 3,
} as const;
const remove = {
  name: 'remove',
  phase: 'remove',
  plan: 'bucket.remove',
  input: () => ({}),
  timeoutSeconds: 60,
  maxAttempts: () => 3,
} as const;
const finalizer = { name: 'example.com/bucket', propagation: 'Background' } as const;

const Bucket = defineKind({
  ...{ ...common, kind: 'Bucket', plural: 'buckets', scope: 'Namespaced', spec, finalizer, effects: [make, remove] },
  children: () => undefined,
});
const Zone = defineKind({
  ...{ ...common, kind: 'Zone', plural: 'zones', scope: 'Cluster', spec, finalizer, effects: [make, remove] },
  children: () => undefined,
});
/** Has nothing to remove, so no finalizer. */
const Notice = defineKind({
  ...{ ...common, kind: 'Notice', plural: 'notices', scope: 'Namespaced', spec, effects: [make] },
  children: () => undefined,
});
const Probe = defineKind({
  ...{ ...common, kind: 'Probe', plural: 'probes', scope: 'Namespaced', spec },
  effects: [{ ...make, everySeconds: 60 }],
  children: () => undefined,
});

const server = new MemoryApiServer();
const logger = createLogger({ level: 'silent' });
const settings = {
  ...{ client: server, logger, stateNamespace: 'system', secretNamespaces: ['more'], runs: 4, drainSeconds: 1 },
  ...{ configDir: undefined, keyDir: undefined },
};
const runs: string[] = [];
const plans: Record<string, PlanRunner> = {
  'bucket.make': async ({ object, run, values, secret }) => {
    const { size, from = '' } = run.input as { readonly size: number; readonly from?: string };
    runs.push(`make ${object.metadata.name} ${size}`);
    expect(object.spec).toMatchObject({ size });
    const [namespace = '', name = ''] = from.split('/');
    const text = name === '' ? 'nothing' : await secret({ namespace, name, key: 'k' });
    await values.put({ id: `id-${object.metadata.name}`, text });
    return { message: `made with ${text}` };
  },
  'bucket.remove': ({ values }) => {
    runs.push(`remove ${values.all()['id'] ?? 'what nobody knows'}`);
    return Promise.resolve({ message: 'removed' });
  },
};

beforeEach(() => {
  server.takeRequests();
  runs.length = 0;
});

/** The effects of a kind in a process of its own. */
function effectsOf(kind: AnyKind, options?: Parameters<typeof runPlans>[1]): Effects {
  const running = runPlans(plans, options)(settings).start(new AbortController().signal);
  return running.of(kind, {
    client: server,
    record: () => undefined,
    enqueue: () => undefined,
    getCached: ({ kind: name, metadata }) => server.peek({ ...kind.type, kind: name }, metadata),
    assertMayRun: () => undefined,
  });
}

async function create(kind: AnyKind, name: string, given: object = {}): Promise<KubeObject> {
  const { apiVersion, kind: named, scope } = kind;
  const metadata = { name, ...(scope === 'Namespaced' ? { namespace: 'team' } : {}) };
  return server.create(kind.type, { apiVersion, kind: named, metadata, spec: given }, { fieldManager: 'kubectl' });
}

/** Reconciles until nothing is under way. */
async function settled(effects: Effects, kind: AnyKind, object: KubeObject, phase: 'apply' | 'remove' = 'apply') {
  let result: EffectsResult | undefined;
  await eventually(async () => {
    result = await effects.reconcile(object, withDefaults(kind, object), phase);
    expect(result.readiness?.state).not.toBe('progressing');
  });
  return result as EffectsResult;
}

async function secret(namespace: string, name: string): Promise<void> {
  const data = { k: Buffer.from(`what ${namespace}/${name} says`).toString('base64') };
  const body = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name }, data };
  await server.create(owned.Secret, body, { fieldManager: 'kubectl' });
}

const stateOf = (name: string) => ({ namespace: 'team', name: `${name}.buckets.example.com` });

test('the state of a namespaced object is in its own namespace, and another process runs nothing again', async () => {
  const object = await create(Bucket, 'a');
  await settled(effectsOf(Bucket), Bucket, object);
  const state = server.peek(owned.ConfigMap, stateOf('a'));
  expect(state?.metadata.ownerReferences).toMatchObject([{ kind: 'Bucket', name: 'a', uid: object.metadata.uid }]);
  const next = effectsOf(Bucket);
  await settled(next, Bucket, object);
  expect(runs).toEqual(['make a 1']);
  await settled(next, Bucket, object, 'remove');
  await next.releaseState(object);
  expect(runs).toEqual(['make a 1', 'remove id-a']);
  expect(server.peek(owned.ConfigMap, stateOf('a'))?.metadata.finalizers).toEqual([]);
});

test('the state of a cluster-scoped object is in the namespace of the operator', async () => {
  const object = await create(Zone, 'a');
  await settled(effectsOf(Zone), Zone, object);
  expect(server.peek(owned.Secret, { namespace: 'system', name: 'a.zones.example.com' })).toBeDefined();
});

test('a state that nothing needs at the end has no finalizer, so that it never outlives its object', async () => {
  const object = await create(Notice, 'a');
  await settled(effectsOf(Notice), Notice, object);
  const state = server.peek(owned.ConfigMap, { namespace: 'team', name: 'a.notices.example.com' });
  expect(state?.metadata).toMatchObject({ ownerReferences: [{ kind: 'Notice' }] });
  expect(state?.metadata.finalizers ?? []).toEqual([]);
});

test('a kind whose effects all repeat stores nothing', async () => {
  await settled(effectsOf(Probe), Probe, await create(Probe, 'a'));
  expect(runs).toEqual(['make a 1']);
  expect(server.writes).toEqual(['POST Probe a (kubectl)']);
});

describe('a state in a namespace of its users', () => {
  type Binary = KubeObject & { readonly binaryData: Readonly<Record<string, string>> };
  const read = (name: string): Binary => server.peek(owned.ConfigMap, stateOf(name)) as Binary;
  /** A user changes the ConfigMap. */
  const write = async (name: string, data: Binary['binaryData']): Promise<unknown> =>
    server.update(owned.ConfigMap, { ...read(name), binaryData: data }, { fieldManager: 'kubectl' });

  test('does not show what a run has stored', async () => {
    await settled(effectsOf(Bucket), Bucket, await create(Bucket, 'hidden'));
    const { binaryData } = read('hidden');
    expect(Object.keys(binaryData)).toEqual(['state']);
    const text = Buffer.from(binaryData['state'] ?? '', 'base64').toString('latin1');
    expect(text).not.toContain('id-hidden');
    expect(text).not.toContain('succeeded');
  });

  test.each([
    ['is changed', (state: Buffer) => state.with(state.length - 1, (state.at(-1) ?? 0) ^ 1)],
    ['is cut', (state: Buffer) => state.subarray(0, 30)],
    ['is empty', () => Buffer.alloc(0)],
    ['is sealed with another key', (state: Buffer) => state.with(0, (state.at(0) ?? 0) ^ 1)],
    ['is that of another object', () => Buffer.from(read('other').binaryData['state'] ?? '', 'base64')],
  ])('is not used when it %s: nothing runs, and nothing is taken for removed', async (what, change) => {
    await settled(
      effectsOf(Bucket),
      Bucket,
      await create(Bucket, 'other').catch(() => server.peek(Bucket.type, { namespace: 'team', name: 'other' })!),
    );
    const name = `forged-${what.replaceAll(' ', '-')}`;
    const object = await create(Bucket, name);
    await settled(effectsOf(Bucket), Bucket, object);
    runs.length = 0;
    const state = Buffer.from(read(name).binaryData['state'] ?? '', 'base64');
    await write(name, { state: Buffer.from(change(state)).toString('base64') });
    const next = effectsOf(Bucket);
    const refused = {
      reason: 'ErrState',
      message: expect.stringContaining(`ConfigMap team/${name}.buckets.example.com`) as string,
    };
    await expect(next.reconcile(object, withDefaults(Bucket, object), 'apply')).rejects.toMatchObject(refused);
    await expect(next.hasStarted({ ...object, status: { attempts: 1 } })).rejects.toMatchObject(refused);
    expect(runs).toEqual([]);
  });

  describe('and its key', () => {
    const key = { namespace: 'system', name: 'kindred-state-key' };
    const dataOf = (): unknown => server.peek(owned.Secret, key)?.['data'];
    const restore = (data: unknown): Promise<unknown> =>
      server.create(
        owned.Secret,
        { apiVersion: 'v1', kind: 'Secret', metadata: key, data },
        { fieldManager: 'velero' },
      );

    test('is stored again by a process that still has it', async () => {
      const effects = effectsOf(Bucket);
      await settled(effects, Bucket, await create(Bucket, 'key-1'));
      const before = dataOf();
      server.remove(owned.Secret, key);
      await settled(effects, Bucket, await create(Bucket, 'key-2'));
      expect(dataOf()).toEqual(before);
    });

    test('is not made anew for a state that was sealed with another one, and may be restored at any time', async () => {
      const object = await create(Bucket, 'key-3');
      await settled(effectsOf(Bucket), Bucket, object);
      const before = dataOf();
      server.remove(owned.Secret, key);
      const next = effectsOf(Bucket);
      const again = () => next.reconcile(object, withDefaults(Bucket, object), 'apply');
      await expect(again()).rejects.toMatchObject({ reason: 'ErrState', isTerminal: false });
      expect(dataOf()).toBeUndefined();
      await restore({ key: Buffer.alloc(32).toString('base64') });
      await expect(again()).rejects.toThrow('sealed with another key than that of Secret system/kindred-state-key');
      server.remove(owned.Secret, key);
      await restore(before);
      await settled(next, Bucket, object);
      expect(runs).toEqual(['make key-3 1']);
    });
  });

  test('made by a user for an object that has none is not used either', async () => {
    const object = await create(Bucket, 'made-up');
    const forged = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { ...stateOf('made-up'), annotations: { 'kindred.dev/owner-uid': object.metadata.uid ?? '' } },
      binaryData: {
        'effects.json': Buffer.from('{}').toString('base64'),
        'value.id': Buffer.from('id-other').toString('base64'),
      },
    };
    await server.create(owned.ConfigMap, forged, { fieldManager: 'kubectl' });
    await expect(effectsOf(Bucket).reconcile(object, withDefaults(Bucket, object), 'apply')).rejects.toMatchObject({
      reason: 'ErrState',
    });
    expect(runs).toEqual([]);
  });
});

test('a state that an earlier version of the kind held loses its finalizer when the kind has none any more', async () => {
  const object = await create(Bucket, 'freed');
  await settled(effectsOf(Bucket), Bucket, object);
  expect(server.peek(owned.ConfigMap, stateOf('freed'))?.metadata.finalizers).toHaveLength(1);
  const { finalizer: _, ...rest } = Bucket;
  const Freed = defineKind({ ...rest, effects: [make] });
  await settled(effectsOf(Freed), Freed, object);
  expect(server.peek(owned.ConfigMap, stateOf('freed'))?.metadata.finalizers).toEqual([]);
  expect(runs).toEqual(['make freed 1']);
});

test('an object that is created again waits for the state of its predecessor to go', async () => {
  const first = await create(Bucket, 'again');
  const effects = effectsOf(Bucket);
  await settled(effects, Bucket, first);
  await effects.releaseState(first);
  server.remove(Bucket.type, { namespace: 'team', name: 'again' });
  const second = await create(Bucket, 'again');
  const next = effectsOf(Bucket);
  const early = next.reconcile(second, withDefaults(Bucket, second), 'apply');
  await expect(early).rejects.toMatchObject({ reason: 'ErrResourceExists', isTerminal: false });
  server.remove(owned.ConfigMap, stateOf('again'));
  await settled(next, Bucket, second);
  expect(runs).toEqual(['make again 1', 'make again 1']);
});

test('the state stays without its owner where the object asks for that', async () => {
  const object = await create(Bucket, 'kept');
  await settled(effectsOf(Bucket, { retainState: () => true }), Bucket, object);
  const state = server.peek(owned.ConfigMap, stateOf('kept'));
  expect(state?.metadata.ownerReferences ?? []).toEqual([]);
  expect(state?.metadata.annotations).toMatchObject({ 'kindred.dev/retained': 'true' });
});

test('names of objects that leave no room for the suffix are shortened, and stay apart', async () => {
  const effects = effectsOf(Bucket);
  const label = 'x'.repeat(60);
  const long = `${label}.${label}.${label}.${'y'.repeat(50)}.z`;
  for (const name of [`${long}.1`, `${long}.2`]) await settled(effects, Bucket, await create(Bucket, name));
  const names = server.requests.flatMap(({ verb, type, ref }) =>
    verb === 'POST' && type.kind === 'ConfigMap' ? [ref.name] : [],
  );
  expect(names).toHaveLength(2);
  expect(new Set(names).size).toBe(2);
  for (const name of names) {
    expect(name.length).toBeLessThanOrEqual(253);
    expect(name).toMatch(/^([a-z0-9]([-a-z0-9]*[a-z0-9])?)([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
  }
});

describe('a plan reads Secrets', () => {
  beforeAll(async () => {
    for (const namespace of ['team', 'other', 'system', 'more']) await secret(namespace, 'input');
    await settled(effectsOf(Zone), Zone, await create(Zone, 'victim'));
    await settled(effectsOf(Bucket), Bucket, await create(Bucket, 'makes-the-key'));
  });

  test.each([
    [Bucket, 'team/input', 'made with what team/input says'],
    [Bucket, 'more/input', 'made with what more/input says'],
    [Zone, 'system/input', 'made with what system/input says'],
  ])('of %p: %s', async (kind, from) => {
    const object = await create(kind, `reads-${from.replace('/', '-')}`, { from });
    expect((await settled(effectsOf(kind), kind, object)).readiness).toBeUndefined();
  });

  test.each([
    [Bucket, 'other/input', 'ErrNamespaceNotAllowed', 'the namespaces to read from are team, more'],
    [Bucket, 'system/input', 'ErrNamespaceNotAllowed', 'the namespaces to read from are team, more'],
    [Zone, 'team/input', 'ErrNamespaceNotAllowed', 'the namespaces to read from are system, more'],
    [Zone, 'system/victim.zones.example.com', 'ErrSecretNotAllowed', 'it belongs to another object'],
    [Zone, 'system/kindred-state-key', 'ErrSecretNotAllowed', 'it belongs to another object'],
  ])('but not of %p: %s', async (kind, from, reason, message) => {
    const object = await create(kind, `may-not-${from.replaceAll('/', '-')}`, { from });
    const { readiness } = await settled(effectsOf(kind), kind, object);
    expect(readiness).toMatchObject({ state: 'stalled', reason });
    expect(readiness?.message).toContain(message);
  });
});

test('plans can be made of the settings of the operator', () => {
  const seen: unknown[] = [];
  const engine = runPlans(({ keyDir, runs: limit }) => {
    seen.push(keyDir, limit);
    return { 'bucket.make': () => Promise.reject(new PlanError('ErrNever', 'It is never run.')) };
  })({ ...settings, keyDir: '/run/keys' });
  expect(seen).toEqual(['/run/keys', 4]);
  expect(engine).toMatchObject({ plans: ['bucket.make'], drainMs: 1000 });
});
