import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { imageMap } from '../../../cli/bundle/image-map';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import type { ApiClient } from '../../../operator/client/api-client';
import { kubeconfigClient, OperatorProcess } from '../../../testing';
import { waitFor } from '../../../testing/wait-for';
import { findCondition } from '../../support/assertions';
import { useSharedControlPlane } from '../../support/shared-control-plane';
import { temporaryFolder } from '../../support/temporary-folder';
import { Api, installCrd } from '../crds/api';
import { Gallery } from './gallery-operator';

// An operator in a process of its own, with a kind whose code throws for some objects and never ends for others.
// test/operator/controller/endless.test.ts and thrown.test.ts have what needs no cluster.

jest.setTimeout(60_000);

const plane = useSharedControlPlane();
const root = join(__dirname, '../../..');
const program = join(temporaryFolder('kindred-gallery-'), 'operator.cjs');
let client: ApiClient;
let operator: OperatorProcess;

beforeAll(async () => {
  buildSync({
    entryPoints: [join(__dirname, 'gallery-operator.ts')],
    outfile: program,
    ...{ bundle: true, platform: 'node', format: 'cjs', target: 'node20', sourcemap: 'linked', logLevel: 'error' },
  });
  // As in an image.
  const map = imageMap(readFileSync(`${program}.map`, 'utf8'), { bundle: program, root, kindred: root });
  writeFileSync(`${program}.map`, map);
  const api = await Api.of(plane.adminKubeconfig);
  await installCrd(api, Gallery);
  await waitFor(async () => (await api.ask('GET', `/apis/${Gallery.apiVersion}/${Gallery.plural}`)).status === 200);
  await api.close();
  client = await kubeconfigClient(plane.adminKubeconfig);
  const election = ['--leader-elect', '--lease-name=gallery', `--lease-namespace=${plane.namespace}`];
  operator = await OperatorProcess.start({
    file: program,
    kubeconfig: plane.adminKubeconfig,
    args: [`--namespaces=${plane.namespace}`, ...election],
  });
  await operator.waitUntilReconciling();
}, 60_000);

afterAll(async () => {
  await operator.kill();
  await client.close();
});

const at = (name: string) => ({ namespace: plane.namespace, name });

async function create(name: string, spec: object): Promise<void> {
  const body: KubeObject = { apiVersion: Gallery.apiVersion, kind: Gallery.kind, metadata: at(name), spec };
  await client.create(Gallery.type, body, { fieldManager: 'kubectl' });
}

/** Waits until `Ready` has a reason. @returns its message */
async function messageOf(name: string, reason: string): Promise<string> {
  let found: ReturnType<typeof findCondition>;
  await waitFor(async () => {
    const object = await client.get(Gallery.type, at(name));
    found = object && findCondition(object, 'Ready');
    return found?.reason === reason;
  });
  return found?.message ?? '';
}

test('rendering that never ends fails its object, which is logged, and all others go on', async () => {
  await create('endless', { title: `${'a'.repeat(60)}!` });
  await create('endless-too', { title: `${'a'.repeat(61)}!` });
  await create('fine', { title: 'aaa' });
  await messageOf('fine', 'Ready');
  expect(await client.get(owned.ConfigMap, at('fine'))).toMatchObject({ data: { isPlain: 'true' } });
  expect(await messageOf('endless', 'ErrRender')).toMatch(
    /^Gallery\.children: TimeLimitError: it has not returned after 5 s and was stopped\./,
  );
  expect(await messageOf('endless-too', 'ErrRender')).toContain('it has not returned after 1 s');
  const line = await operator.log.line('not as the spec says');
  expect(line).toMatchObject({ controller: Gallery.crdName, reason: 'ErrRender' });
  expect(line['key']).toBe(`object:${plane.namespace}/endless`);
  // The Lease was renewed in time.
  expect(operator.running).toBe(true);
});

test('the object goes on when its spec is corrected', async () => {
  await client.patch(
    Gallery.type,
    at('endless'),
    { spec: { title: 'plain' } },
    { type: 'merge', fieldManager: 'kubectl' },
  );
  await messageOf('endless', 'Ready');
  expect(await client.get(owned.ConfigMap, at('endless'))).toMatchObject({ data: { title: 'plain' } });
});

test('what children throws is reported with the line of the source', async () => {
  await create('thrown', { title: 'a', size: 'huge' });
  expect(await messageOf('thrown', 'ErrRender')).toMatch(
    /^Gallery\.children: TypeError: Cannot read properties of undefined \(reading 'width'\) \(test\/e2e\/operator\/gallery-operator\.ts:24:\d+\)$/,
  );
});
