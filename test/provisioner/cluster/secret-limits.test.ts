import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import type { ObjectKeyRef } from '../../../constructs/kind/reads';
import { Cluster, Kubeconfig } from '../../../constructs/kinds';
import { provisionerEffects } from '../../../provisioner/provisioner';
import { EffectInputReader } from '../../../operator/effects/effect-input-reader';
import { putKubeconfig } from '../../../provisioner/cluster/secrets';
import { createLogger } from '../../../operator/process/logger';
import { MemoryApiServer } from '../../../testing/api-server/memory-api-server';

const namespace = 'system';
let server: MemoryApiServer;
let reads: EffectInputReader;

const cluster = (name: string, spec: object = {}): KubeObject => ({
  apiVersion: Cluster.apiVersion,
  kind: 'Cluster',
  metadata: { name, uid: `uid-${name}` },
  spec,
});
const kubeconfig = (metadata: object = {}): KubeObject => ({
  apiVersion: Kubeconfig.apiVersion,
  kind: 'Kubeconfig',
  metadata: { name: 'k', uid: 'uid-k', ...metadata },
});

/** The Secrets of a cluster, as the provisioner makes them. */
beforeEach(async () => {
  server = new MemoryApiServer();
  const options = provisionerEffects({ client: server, logger: createLogger({ level: 'error' }), namespace });
  reads = new EffectInputReader(server, options.reads);
  await options.storeOf(Cluster).save(cluster('edge'), { records: {}, values: { token: 'SECRET' } });
  await putKubeconfig(server, cluster('edge'), { namespace, text: 'SECRET', retain: false });
});

const STATE: ObjectKeyRef = { namespace, name: 'edge-state', key: 'value.token' };
const KUBECONFIG: ObjectKeyRef = { namespace, name: 'edge-kubeconfig', key: 'kubeconfig' };
const refused = (words: string): object => ({
  reason: 'ErrSecretNotAllowed',
  message: expect.stringContaining(words) as string,
});

/** Every place where a spec names a Secret. */
const places: readonly (readonly [string, AnyKind, (ref: object) => object])[] = [
  ['configSecretRef', Cluster, (configSecretRef) => ({ configSecretRef })],
  ['sshKeySecretRef', Cluster, (sshKeySecretRef) => ({ sshKeySecretRef })],
  ['a bastion', Cluster, (sshKeySecretRef) => ({ nodes: [{ address: '192.0.2.1', bastion: { sshKeySecretRef } }] })],
  ...(['rke2', 'k3s'] as const).flatMap((name): (typeof places)[number][] => [
    [`${name} registry`, Cluster, (credentialsSecretRef) => ({ [name]: { registries: [{ credentialsSecretRef }] } })],
    [`${name} registry CA`, Cluster, (caSecretRef) => ({ [name]: { registries: [{ caSecretRef }] } })],
    [
      `${name} S3`,
      Cluster,
      (credentialsSecretRef) => ({ [name]: { etcdSnapshots: { s3: { credentialsSecretRef } } } }),
    ],
    [`${name} S3 CA`, Cluster, (caSecretRef) => ({ [name]: { etcdSnapshots: { s3: { caSecretRef } } } })],
  ]),
  ['rke registry', Cluster, (credentialsSecretRef) => ({ rke: { privateRegistries: [{ credentialsSecretRef }] } })],
  ['rke S3', Cluster, (caSecretRef) => ({ rke: { services: { etcd: { snapshots: { s3: { caSecretRef } } } } } })],
  ['k3s datastore', Cluster, (endpointSecretRef) => ({ k3s: { datastore: { endpointSecretRef } } })],
  ['secretRef', Kubeconfig, (secretRef) => ({ secretRef })],
];

describe.each(places)('%s', (_, kind, spec) => {
  test.each([
    ['state', STATE],
    ['kubeconfig', KUBECONFIG],
  ])('does not take the %s of another Cluster', async (what, ref) => {
    const by = { ...cluster('mine', spec(ref)), kind: kind.kind };
    const message = `Secret system/${ref.name} is not read: it is the ${what} of Cluster edge`;
    await expect(reads.reader(kind.reads, by as never, [])).rejects.toMatchObject(refused(message));
    await expect(reads.secret(ref, by)).rejects.toMatchObject(refused(message));
  });
});

test('a Cluster has its own, also after it was given another UID by hand', async () => {
  expect(await reads.secret(STATE, cluster('edge'))).toBe('SECRET');
  server.edit(owned.Secret, { namespace, name: 'edge-state' }, (secret) => ({
    ...secret,
    metadata: { ...secret.metadata, annotations: { 'kindred.dev/owner-uid': 'uid-anew' } },
  }));
  const anew = { ...cluster('edge'), metadata: { name: 'edge', uid: 'uid-anew' } };
  expect(await reads.secret(STATE, anew)).toBe('SECRET');
  await expect(reads.secret(STATE, cluster('edge'))).rejects.toMatchObject(refused('state'));
});

test('a Cluster does not get at it by what it says of its own owners', async () => {
  const [{ metadata }] = [cluster('mine')];
  const by = {
    ...cluster('mine'),
    metadata: {
      ...metadata,
      annotations: { 'kindred.dev/owner-uid': 'uid-edge' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Cluster', name: 'edge', uid: 'uid-edge' }],
    },
  };
  for (const ref of [STATE, KUBECONFIG]) await expect(reads.secret(ref, by)).rejects.toMatchObject(refused('edge'));
});

describe('a Kubeconfig', () => {
  const made = { annotations: { 'kindred.dev/owner-uid': 'uid-edge' } };

  test('has the kubeconfig of the Cluster that made it, and of none other; no state at all', async () => {
    expect(await reads.secret(KUBECONFIG, kubeconfig(made))).toBe('SECRET');
    await expect(reads.secret(KUBECONFIG, kubeconfig())).rejects.toMatchObject(refused('kubeconfig'));
    await expect(reads.secret(STATE, kubeconfig(made))).rejects.toMatchObject(refused('state'));
  });

  test('has one that a Cluster left behind', async () => {
    server.edit(owned.Secret, { namespace, name: 'edge-kubeconfig' }, (secret) => ({
      ...secret,
      metadata: { ...secret.metadata, ownerReferences: [] },
    }));
    expect(await reads.secret(KUBECONFIG, kubeconfig())).toBe('SECRET');
    await expect(reads.secret(KUBECONFIG, cluster('mine'))).rejects.toMatchObject(refused('another object'));
  });
});

test.each([
  ['a person', {}],
  [
    'another controller',
    { labels: { 'app.kubernetes.io/managed-by': 'vault' }, annotations: { 'kindred.dev/owner-uid': 'x' } },
  ],
  [
    'a kind that renders Secrets',
    {
      labels: { 'app.kubernetes.io/managed-by': 'kindred' },
      annotations: { 'kindred.dev/owner-uid': 'x', 'kindred.dev/hash': 'h' },
    },
  ],
])('what %s made is read', async (_, metadata) => {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'key', namespace, ...metadata },
    data: { k: 'a2V5' },
  };
  await server.create(owned.Secret, secret, { fieldManager: 'x' });
  expect(await reads.secret({ namespace, name: 'key', key: 'k' }, cluster('mine'))).toBe('key');
});
