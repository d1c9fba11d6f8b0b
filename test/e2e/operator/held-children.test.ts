import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import type { ApiClient } from '../../../operator/client/api-client';
import { kubeconfigClient, OperatorProcess } from '../../../testing';
import { waitFor } from '../../../testing/wait-for';
import { findCondition } from '../../support/assertions';
import { useSharedControlPlane } from '../../support/shared-control-plane';
import { temporaryFolder } from '../../support/temporary-folder';
import { Api, installCrd } from '../crds/api';
import { Release } from './release-operator';

// Children that are rendered from what an effect reports, on a real API server.
// test/operator/reconcile/held-children.test.ts has the orders of events.

jest.setTimeout(60_000);

const plane = useSharedControlPlane();
const folder = temporaryFolder('kindred-releases-');
const program = join(folder, 'operator.cjs');
const ref = { namespace: plane.namespace, name: 'shop' };
let client: ApiClient;
let operator: OperatorProcess;

async function start(): Promise<void> {
  const election = ['--leader-elect', '--lease-name=releases', `--lease-namespace=${plane.namespace}`];
  operator = await OperatorProcess.start({
    file: program,
    kubeconfig: plane.adminKubeconfig,
    args: [`--namespaces=${plane.namespace}`, ...election],
    env: { RELEASES: folder },
  });
  await operator.waitUntilReconciling();
}

beforeAll(async () => {
  buildSync({
    entryPoints: [join(__dirname, 'release-operator.ts')],
    outfile: program,
    ...{ bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'error' },
  });
  const api = await Api.of(plane.adminKubeconfig);
  await installCrd(api, Release);
  await waitFor(async () => (await api.ask('GET', `/apis/${Release.apiVersion}/${Release.plural}`)).status === 200);
  await api.close();
  client = await kubeconfigClient(plane.adminKubeconfig);
  writeFileSync(join(folder, 'stable'), 'example.com/shop:1');
  await start();
}, 60_000);

afterAll(async () => {
  await operator.kill();
  await client.close();
});

const put = (body: object): Promise<KubeObject> =>
  client.apply(
    Release.type,
    { apiVersion: Release.apiVersion, kind: Release.kind, metadata: ref, ...body },
    { fieldManager: 'kubectl', force: true },
  );

const deployment = (): Promise<KubeObject | undefined> => client.get(owned.Deployment, ref);

/** Waits until `Ready` is of the present spec and has a reason. @returns its message */
async function messageOf(reason: string): Promise<string> {
  let message = '';
  await waitFor(async () => {
    const object = await client.get(Release.type, ref);
    const ready = object && findCondition(object, 'Ready');
    message = ready?.message ?? '';
    return ready?.reason === reason && ready.observedGeneration === object?.metadata.generation;
  });
  return message;
}

async function loseStatus(): Promise<void> {
  const patch = { status: null };
  await client.patch(Release.type, ref, patch, { type: 'merge', fieldManager: 'kubectl', subresource: 'status' });
  expect((await client.get(Release.type, ref))?.status).toBeUndefined();
}

test('a Deployment outlives a lost status and a failing look-up, and changes with the next report', async () => {
  await put({ spec: {} });
  await messageOf('Ready');
  const before = await deployment();
  expect(before).toMatchObject({ spec: { template: { spec: { containers: [{ image: 'example.com/shop:1' }] } } } });

  expect(await operator.stop()).toMatchObject({ code: 0 });
  await loseStatus();
  rmSync(join(folder, 'stable'));
  await start();
  const failing = await messageOf('ErrLookUp');
  expect(failing).toContain('The channel stable does not answer.');
  expect(failing).toContain(
    'Until the effect "look-up" has succeeded for this spec, the children that follow from status.image are held',
  );
  expect((await deployment())?.metadata).toMatchObject({ uid: before?.metadata.uid, generation: 1 });

  // A change of the spec is held too, and its look-up ends that.
  writeFileSync(join(folder, 'edge'), 'example.com/shop:2');
  await put({ spec: { channel: 'edge' } });
  await messageOf('Ready');
  expect(await deployment()).toMatchObject({
    metadata: { uid: before?.metadata.uid, labels: { channel: 'edge' }, generation: 2 },
    spec: { template: { spec: { containers: [{ image: 'example.com/shop:2' }] } } },
  });
});
