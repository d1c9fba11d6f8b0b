import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { Cluster } from '../../../constructs/kinds';
import type { ApiClient } from '../../../operator/client/api-client';
import { createApiClient } from '../../../operator/client/http-api-client';
import { loadClusterAccess } from '../../../operator/client/kubeconfig';
import { StateStore } from '../../../operator/effects/state-store';
import { useSharedControlPlane } from '../../support/shared-control-plane';

const plane = useSharedControlPlane();
const { namespace } = plane;
let client: ApiClient;
let kept: StateStore;

const owner: KubeObject = {
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  metadata: { name: 'a', uid: '5b3b9a4e-0000-4000-8000-000000000001' },
};
const ref = { namespace, name: 'a-state' };
const state = (value: string) => ({ records: {}, values: { value } });
const store = (): StateStore =>
  new StateStore({
    client,
    kind: Cluster,
    refOf: ({ metadata }) => ({ namespace, name: `${metadata.name}-state` }),
    retain: () => false,
  });
const patch = (metadata: object): Promise<KubeObject> =>
  client.patch(owned.Secret, ref, { metadata }, { type: 'merge', fieldManager: 'kubectl' });

beforeEach(async () => {
  client = createApiClient(loadClusterAccess({ path: plane.adminKubeconfig }));
  kept = store();
  await kept.save(owner, state('one'));
});
afterEach(async () => {
  await kept.release(owner);
  await client.delete(owned.Secret, ref);
  await client.close();
});

test('a Secret that is being deleted, without our finalizer too, is written as ever', async () => {
  await patch({ finalizers: ['example.com/theirs'], labels: { team: 'x' } });
  await client.delete(owned.Secret, ref);
  await kept.save(owner, state('two'));
  expect(await store().load(owner)).toEqual(state('two'));
  const { metadata } = (await client.get(owned.Secret, ref))!;
  expect(metadata.deletionTimestamp).toBeDefined();
  expect(metadata.labels).toMatchObject({ team: 'x' });
  await patch({ finalizers: null });
});

test('a Secret that is gone is made again', async () => {
  await patch({ finalizers: null });
  await client.delete(owned.Secret, ref);
  await kept.save(owner, state('two'));
  expect(await store().load(owner)).toEqual(state('two'));
});

test('what holds a Secret goes with its release', async () => {
  await client.delete(owned.Secret, ref);
  expect(await store().load(owner)).toEqual(state('one'));
  await kept.release(owner);
  expect(await client.get(owned.Secret, ref)).toBeUndefined();
});
