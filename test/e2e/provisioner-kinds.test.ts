import type { AnyKind } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { validateObject } from '../../constructs/kind/validate';
import { Cluster, Kubeconfig, provisionerKinds } from '../../constructs/kinds';
import { waitFor } from '../../testing/wait-for';
import { clusterSpecs, kubeconfigSpecs, rke2 } from '../constructs/kinds/cluster-specs';
import { useSharedControlPlane } from '../support/shared-control-plane';
import { Api, installCrd } from './crds/api';

const plane = useSharedControlPlane();
const pathOf = ({ apiVersion, plural }: AnyKind): string => `/apis/${apiVersion}/${plural}`;

let api: Api;

function refusalOf(kind: AnyKind, object: KubeObject): string | undefined {
  try {
    validateObject(kind, object);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

async function judge(kind: AnyKind, name: string, spec: object): Promise<Record<'zod' | 'server', string | undefined>> {
  const object = { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name }, spec };
  const { status, body } = await api.ask('POST', `${pathOf(kind)}?dryRun=All&fieldValidation=Strict`, object);
  // 400 is how strict field validation refuses, 422 all other validation.
  expect([201, 400, 422]).toContain(status);
  return { zod: refusalOf(kind, object), server: status === 201 ? undefined : body.message };
}

const accepted = { zod: undefined, server: undefined };
const refused = { zod: expect.any(String) as string, server: expect.any(String) as string };

beforeAll(async () => {
  api = await Api.of(plane.adminKubeconfig);
  for (const kind of provisionerKinds) {
    await installCrd(api, kind);
    await waitFor(async () => (await api.ask('GET', pathOf(kind))).status === 200);
  }
}, 60_000);

afterAll(() => api.close());

test.each(provisionerKinds.flatMap((kind) => kind.samples.map((sample) => [kind.kind, kind, sample] as const)))(
  'the sample of %s stands',
  async (_, kind, { name, labels, spec }) => {
    const object = { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name, labels }, spec: spec as object };
    const { status, body } = await api.ask('POST', `${pathOf(kind)}?fieldValidation=Strict`, object);
    expect({ status, message: body.message }).toEqual({ status: 201, message: undefined });
    expect(body.spec).toEqual(validateObject(kind, object).spec);
  },
);

describe('zod and the API server agree on a Cluster with', () => {
  test.each(clusterSpecs)('%s (valid: %p)', async (_, valid, spec) => {
    expect(await judge(Cluster, 'judged', spec)).toEqual(valid ? accepted : refused);
  });

  test.each([
    ['a'.repeat(63), true],
    ['a.b', true],
    ['a'.repeat(64), false],
  ])('the name %s (valid: %p)', async (name, valid) => {
    expect(await judge(Cluster, name, rke2)).toEqual(valid ? accepted : refused);
  });
});

describe('zod and the API server agree on a Kubeconfig with', () => {
  test.each(kubeconfigSpecs)('%s (valid: %p)', async (_, valid, spec) => {
    expect(await judge(Kubeconfig, 'judged', spec)).toEqual(valid ? accepted : refused);
  });
});

describe('a Cluster that stands', () => {
  const path = `${pathOf(Cluster)}/stands`;

  beforeAll(async () => {
    const metadata = { name: 'stands', finalizers: [Cluster.finalizer?.name] };
    const spec = { ...rke2, rke2: { clusterCidrs: ['10.1.0.0/16'] } };
    const object = { apiVersion: Cluster.apiVersion, kind: 'Cluster', metadata, spec };
    const { status, body } = await api.ask('POST', pathOf(Cluster), object);
    expect({ status, message: body.message }).toEqual({ status: 201, message: undefined });
  });

  const patch = (spec: object) => api.ask('PATCH', `${path}?dryRun=All`, { spec });

  test('keeps its distribution', async () => {
    const { status, body } = await patch({ distribution: 'k3s', version: 'v1.30.4+k3s1', rke2: null });
    expect(status).toBe(422);
    expect(body.message).toContain('spec.distribution: Invalid value: "k3s": cannot be changed: make a new Cluster');
  });

  test('keeps its addresses', async () => {
    const { status, body } = await patch({ rke2: { clusterCidrs: ['10.2.0.0/16'] } });
    expect(status).toBe(422);
    expect(body.message).toContain('cannot be changed once the cluster stands');
  });

  test('takes nodes and versions', async () => {
    const more = [...rke2.nodes, { address: 'second', user: 'root', roles: ['worker'] }];
    expect((await patch({ nodes: more, version: 'v1.31.0+rke2r1' })).status).toBe(200);
  });

  test('takes a status with every field', async () => {
    const now = '2026-01-01T00:00:00Z';
    const condition = { type: 'Provisioned', status: 'True', reason: 'Applied', message: '', lastTransitionTime: now };
    const wanted = {
      appliedConfig: { text: 'nodes: []', sha256: 'a'.repeat(64) },
      nodes: [{ address: '10.18.74.175', roles: ['etcd'], state: 'Ready', version: 'v1.30.4', message: '' }],
      attempts: 1,
      kubeconfigRef: { namespace: 'clusters', name: 'stands-kubeconfig', key: 'kubeconfig' },
      conditions: [{ ...condition, lastUpdateTime: now }],
    };
    const { status, body } = await api.ask('PATCH', `${path}/status?fieldValidation=Strict`, { status: wanted });
    expect({ status, message: body.message }).toEqual({ status: 200, message: undefined });
    expect(body.status).toEqual(wanted);
  });
});
