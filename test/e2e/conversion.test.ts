import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crdManifest } from '../../constructs/crd';
import type { AnyKind } from '../../constructs/kind/kind';
import { CONVERSION_ANNOTATION } from '../../constructs/kind/conversion';
import { CertificateAuthority } from '../../local/certificates';
import { kubectl } from '../../testing/kubectl';
import { waitFor } from '../../testing/wait-for';
import { runOperator } from '../../operator/manager';
import { createLogger } from '../../operator/process/logger';
import { OperatorMetrics } from '../../operator/metrics/operator-metrics';
import { kubeconfigClient } from '../../testing';
import { Shop, Stall } from '../constructs/kind/versions-kind';
import { useSharedControlPlane } from '../support/shared-control-plane';
import { Api } from './crds/api';

const plane = useSharedControlPlane();
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const pathsOf = (plural: string) => ({
  now: `/apis/test.example.com/v1/namespaces/${plane.namespace}/${plural}`,
  old: `/apis/test.example.com/v1beta1/namespaces/${plane.namespace}/${plural}`,
});
const [SHOPS, STALLS] = [pathsOf('shops'), pathsOf('stalls')];

const certDir = mkdtempSync(join(tmpdir(), 'kindred-conversion-'));
const authority = new CertificateAuthority('webhook-ca');
let api: Api;
let operator: RunningOperator;

interface RunningOperator {
  readonly webhookPort: number;
  readonly metrics: OperatorMetrics;
  readyz(): Promise<number>;
  stop(): Promise<void>;
}

/** The operator with its webhook, in this process. It listens before it has read anything from the API server. */
async function startOperator(webhookPort = 0): Promise<RunningOperator> {
  const stopping = new AbortController();
  const metrics = new OperatorMetrics({ defaults: false });
  let ports = { webhook: 0, health: 0 };
  const running = runOperator({
    client: await kubeconfigClient(plane.adminKubeconfig),
    kinds: [Shop, Stall],
    logger: createLogger({ level: 'silent' }),
    metrics,
    signal: stopping.signal,
    onLost: () => undefined,
    webhook: {
      port: webhookPort,
      host: '127.0.0.1',
      certDir,
      drainMs: 0,
      onListening: (webhook) => (ports = { ...ports, webhook }),
    },
    health: { port: 0, host: '127.0.0.1' },
    onListening: (health) => (ports = { ...ports, health }),
  });
  await Promise.race([running, waitFor(() => ports.health > 0 && ports.webhook > 0)]);
  return {
    webhookPort: ports.webhook,
    metrics,
    readyz: async () => (await fetch(`http://127.0.0.1:${String(ports.health)}/readyz`)).status,
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/** The CRD, with the webhook outside the cluster. */
function crdFor(kind: AnyKind, port: number, stored = kind.version): object {
  const crd = crdManifest(kind, { conversionWebhook: { service: { name: 'unused', namespace: 'unused' } } });
  const spec = crd.spec as { conversion: { webhook: object }; versions: { name: string }[] };
  const clientConfig = {
    url: `https://127.0.0.1:${String(port)}/convert`,
    caBundle: Buffer.from(authority.certificate).toString('base64'),
  };
  const versions = spec.versions.map((version) => ({ ...version, storage: version.name === stored }));
  const conversion = { ...spec.conversion, webhook: { ...spec.conversion.webhook, clientConfig } };
  return { ...crd, spec: { ...spec, versions, conversion } };
}

beforeAll(async () => {
  api = await Api.of(plane.adminKubeconfig);
  const { certificate, key } = authority.server('webhook', ['127.0.0.1']);
  writeFileSync(join(certDir, 'tls.crt'), certificate);
  writeFileSync(join(certDir, 'tls.key'), key);
  operator = await startOperator();
  const inCluster = crdManifest(Shop, { conversionWebhook: { service: { name: 'kindred', namespace: 'default' } } });
  expect(await api.ask('POST', `${CRDS}?fieldValidation=Strict&dryRun=All`, inCluster)).toMatchObject({ status: 201 });
  for (const [kind, { old }] of [
    [Shop, SHOPS],
    [Stall, STALLS],
  ] as const) {
    const crd = crdFor(kind, operator.webhookPort);
    expect(await api.ask('POST', `${CRDS}?fieldValidation=Strict`, crd)).toMatchObject({ status: 201 });
    await waitFor(async () => (await api.ask('GET', old)).status === 200, { describe: 'the kind to be served' });
  }
}, 60_000);

afterAll(async () => {
  await api.close();
  await operator.stop();
  rmSync(certDir, { recursive: true, force: true });
});

function shop(version: string, name: string, spec: object): object {
  return {
    apiVersion: `test.example.com/${version}`,
    kind: 'Shop',
    metadata: { name, namespace: plane.namespace },
    spec,
  };
}

function stall(name: string, chairs: string): object {
  return { ...shop('v1beta1', name, { chairs }), kind: 'Stall' };
}

interface Read {
  readonly spec: unknown;
  readonly status?: { readonly built?: string; readonly observedGeneration?: number };
  readonly metadata: { readonly annotations?: Record<string, string>; readonly generation: number };
}

async function get(path: string): Promise<Read> {
  return (await api.ask('GET', path)).body as never;
}

/** Resolves when the operator has made the child of a stall and said so. */
async function built(name: string): Promise<Read> {
  await waitFor(async () => (await get(`${STALLS.now}/${name}`)).status?.built === name, {
    describe: `${name} to be built`,
  });
  return get(`${STALLS.now}/${name}`);
}

test('what the old version cannot hold survives a change in it', async () => {
  const spec = { image: 'a', size: 2, limits: { cpu: '1', memory: '2Gi' }, ports: [80] };
  expect(await api.ask('POST', SHOPS.now, shop('v1', 'corner', spec))).toMatchObject({ status: 201 });
  const old = await get(`${SHOPS.old}/corner`);
  expect(old.spec).toEqual({ image: 'a', replicas: 2, memory: '2Gi' });
  expect(old.metadata.annotations).toHaveProperty([CONVERSION_ANNOTATION]);

  expect(await api.ask('PATCH', `${SHOPS.old}/corner`, { spec: { replicas: 5 } })).toMatchObject({ status: 200 });
  const now = await get(`${SHOPS.now}/corner`);
  expect(now.spec).toEqual({ ...spec, size: 5 });
  expect(now.metadata.annotations ?? {}).not.toHaveProperty([CONVERSION_ANNOTATION]);
});

test('an object written in the old version is stored in the current one', async () => {
  expect(await api.ask('POST', SHOPS.old, shop('v1beta1', 'old', { image: 'b' }))).toMatchObject({ status: 201 });
  expect((await get(`${SHOPS.now}/old`)).spec).toEqual({ image: 'b', size: 1 });
  expect((await get(`${SHOPS.old}/old`)).spec).toEqual({ image: 'b' });
});

test('an object that the old version does not admit does not spoil its lists, nor changes elsewhere in it', async () => {
  expect(await api.ask('POST', SHOPS.now, shop('v1', 'big', { image: 'c', size: 50 }))).toMatchObject({ status: 201 });
  expect(await api.ask('GET', SHOPS.old)).toMatchObject({ status: 200 });
  const labelled = await api.ask('PATCH', `${SHOPS.old}/big`, { metadata: { labels: { a: 'b' } } });
  expect(labelled).toMatchObject({ status: 200 });
  expect((await get(`${SHOPS.now}/big`)).spec).toEqual({ image: 'c', size: 50 });
});

test('server-side apply in the old version, with its warning', async () => {
  const apply = async (replicas: number) => {
    const input = JSON.stringify(shop('v1beta1', 'applied', { image: 'd', replicas }));
    return kubectl(plane, ['apply', '--server-side', '-f', '-'], { input });
  };
  expect(await apply(3)).toMatchObject({ code: 0, stderr: expect.stringContaining('goes in 2.0; use v1') as string });
  expect(await api.ask('PATCH', `${SHOPS.now}/applied`, { spec: { ports: [80] } })).toMatchObject({ status: 200 });
  expect(await apply(4)).toMatchObject({ code: 0 });
  expect((await get(`${SHOPS.now}/applied`)).spec).toEqual({ image: 'd', size: 4, ports: [80] });
});

test('the operator reconciles what is written in the old version; both versions show its status', async () => {
  expect(await api.ask('POST', STALLS.old, stall('market', '12'))).toMatchObject({ status: 201 });
  const now = await built('market');
  expect(now.spec).toEqual({ seats: 12 });
  expect(await api.ask('GET', `/api/v1/namespaces/${plane.namespace}/configmaps/market`)).toMatchObject({
    body: { data: { seats: '12' } },
  });
  const old = await get(`${STALLS.old}/market`);
  expect(old).toMatchObject({ spec: { chairs: '12' }, status: now.status });

  expect(await api.ask('PATCH', `${STALLS.old}/market`, { spec: { chairs: '13' } })).toMatchObject({ status: 200 });
  expect((await get(`${STALLS.now}/market`)).status).toMatchObject({ built: 'market' });
  await waitFor(async () =>
    JSON.stringify(await get(`/api/v1/namespaces/${plane.namespace}/configmaps/market`)).includes('"13"'),
  );
  const { stdout } = await kubectl(plane, [
    'get',
    '-n',
    plane.namespace,
    'stalls.v1beta1.test.example.com',
    'market',
    '-o',
    'jsonpath={.spec.chairs}',
  ]);
  expect(stdout).toBe('13');
});

test('what cannot be converted is refused in our words', async () => {
  const { status, body } = await api.ask('POST', STALLS.old, stall('crowded', '1000'));
  expect(status).toBe(500);
  expect(body.message).toContain(`Stall ${plane.namespace}/crowded cannot be converted to test.example.com/v1`);
  expect(body.message).toContain('spec.seats');
  expect(await api.ask('GET', `${STALLS.now}/crowded`)).toMatchObject({ status: 404 });
});

/** Server-side apply by a manager of a name. */
function apply(manager: string, object: object): ReturnType<typeof kubectl> {
  return kubectl(plane, ['apply', '--server-side', `--field-manager=${manager}`, '-f', '-'], {
    input: JSON.stringify(object),
  });
}

test('appliers of different versions share an object', async () => {
  expect(await apply('new', shop('v1', 'shared', { image: 'a', ports: [80] }))).toMatchObject({ code: 0 });
  expect(await apply('old', shop('v1beta1', 'shared', { replicas: 3, image: 'a' }))).toMatchObject({ code: 0 });
  expect(await apply('new', shop('v1', 'shared', { image: 'a', ports: [81] }))).toMatchObject({ code: 0 });
  expect((await get(`${SHOPS.now}/shared`)).spec).toEqual({ image: 'a', size: 3, ports: [81] });
});

// Pruning, the API server converts what is left of an object without the fields of the one who lets go of them, required or not, before
// it puts back those that others own.
test('one of two appliers lets go of a required field', async () => {
  expect(await apply('new', shop('v1', 'shared', { ports: [82] }))).toMatchObject({ code: 0 });
  expect((await get(`${SHOPS.now}/shared`)).spec).toEqual({ image: 'a', size: 3, ports: [82] });
  const both = await apply('old', shop('v1beta1', 'shared', { replicas: 3 }));
  expect(both).toMatchObject({ code: 1, stderr: expect.stringContaining('spec.image: Required value') as string });
});

test('an applier goes from one version to the other and back, and what it no longer applies goes', async () => {
  const stalls = (version: string, spec: object) => ({ ...shop(version, 'moved', spec), kind: 'Stall' });
  expect(await apply('one', stalls('v1beta1', { chairs: '3' }))).toMatchObject({ code: 0 });
  expect(await apply('one', stalls('v1', { seats: 4 }))).toMatchObject({ code: 0 });
  expect((await get(`${STALLS.now}/moved`)).spec).toEqual({ seats: 4 });
  expect(await apply('one', stalls('v1beta1', { chairs: '5' }))).toMatchObject({ code: 0 });
  expect((await get(`${STALLS.now}/moved`)).spec).toEqual({ seats: 5 });
  expect(await apply('one', stalls('v1', {}))).toMatchObject({
    ...{ code: 1, stderr: expect.stringContaining('spec.seats: Required value') as string },
  });
  expect(await apply('two', shop('v1beta1', 'moved', { image: 'a', memory: '1Gi' }))).toMatchObject({ code: 0 });
  expect(await apply('two', shop('v1', 'moved', { image: 'b' }))).toMatchObject({ code: 0 });
  expect((await get(`${SHOPS.now}/moved`)).spec).toEqual({ image: 'b', size: 1 });
});

test('whatever a manager applied before in any version, what it applies now is all that is left', async () => {
  const manifests = [
    shop('v1', 'pairs', { image: 'a' }),
    shop('v1', 'pairs', { image: 'b', size: 3, limits: { cpu: '1', memory: '1Gi' }, ports: [80] }),
    shop('v1beta1', 'pairs', { image: 'c' }),
    shop('v1beta1', 'pairs', { image: 'd', replicas: 2, memory: '2Gi' }),
  ] as (Read & { readonly apiVersion: string })[];
  const put = async (object: Read & { readonly apiVersion: string }): Promise<unknown> => {
    const path = `${object.apiVersion.endsWith('/v1') ? SHOPS.now : SHOPS.old}/pairs`;
    const { status } = await api.ask('APPLY', `${path}?fieldManager=pairs`, object);
    expect([200, 201]).toContain(status);
    // The operator owns the status in v1. Whether it has written it decides if the API server converts to v1 when it prunes.
    await waitFor(
      async () => {
        const { metadata, status } = await get(`${SHOPS.now}/pairs`);
        return status?.observedGeneration === metadata.generation;
      },
      { describe: 'the operator to have written the status' },
    );
    return (await get(`${SHOPS.now}/pairs`)).spec;
  };
  const alone: unknown[] = [];
  for (const manifest of manifests) {
    alone.push(await put(manifest));
    await api.ask('DELETE', `${SHOPS.now}/pairs`);
  }
  for (const before of manifests) {
    for (const [i, after] of manifests.entries()) {
      await api.ask('DELETE', `${SHOPS.now}/pairs`);
      const { size } = (await put(before)) as { size: number };
      // A conversion gives v1 the default of size, by which the API server takes it for kept: see ADR 0009.
      const setsSize = ['replicas', 'size'].some((field) => Object.hasOwn(after.spec as object, field));
      const converts = [before, after].some(({ apiVersion }) => !apiVersion.endsWith('/v1'));
      const stays = converts && !setsSize ? { size } : {};
      expect(await put(after)).toEqual({ ...(alone[i] as object), ...stays });
    }
  }
});

test('objects that are stored in the old version do not keep a new operator from starting', async () => {
  const { webhookPort } = operator;
  await operator.stop();
  const store = async (version: string) => {
    const body = { spec: (crdFor(Stall, webhookPort, version) as { spec: object }).spec };
    expect(await api.ask('PATCH', `${CRDS}/${Stall.crdName}`, body)).toMatchObject({ status: 200 });
  };
  await store('v1beta1');
  // Nobody converts now: only what needs no conversion succeeds.
  await waitFor(async () => (await api.ask('POST', STALLS.old, stall('stored', '7'))).status === 201);
  await store('v1');
  await waitFor(async () => (await api.ask('GET', `${STALLS.now}/stored`)).status === 500, {
    describe: 'v1 to be stored',
  });

  operator = await startOperator(webhookPort);
  await waitFor(async () => (await operator.readyz()) === 200, { describe: 'the operator to be ready' });
  expect((await built('stored')).spec).toEqual({ seats: 7 });
}, 60_000);

test('the operator counts what it converts', async () => {
  const text = await operator.metrics.render();
  expect(text).toMatch(/kindred_conversion_requests_total\{kind="stalls.test.example.com",result="success"\} [1-9]/);
  expect(text).not.toContain('result="invalid"');
});
