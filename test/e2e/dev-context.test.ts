import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned, type ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../../operator/client/api-client';
import { leaseType, recordOf } from '../../operator/leader/lease';
import { adminClient } from '../../testing';
import { kubectlOrThrow, useControlPlane, waitFor } from '../../testing/control-plane';
import { installKindred } from '../support/project-folder';
import { Start, expectNothingLeft, folder, startTimeoutMs } from './dev-process';

jest.setTimeout(startTimeoutMs);

/** The cluster that exists. */
const cluster = useControlPlane({ components: 'full' });

const source = (text: string): string => `import { k8s } from 'cdk8s-plus-27';
import { defineKind, owned } from 'kindred/constructs';
import { z } from 'zod';

export const Memo = defineKind({
  group: 'memos.example.com', version: 'v1', kind: 'Memo', plural: 'memos', scope: 'Namespaced',
  description: 'A memo.',
  spec: z.object({ text: z.string().max(99).describe('The text.') }),
  owns: [owned.ConfigMap],
  samples: [{ name: 'hello', spec: { text: 'hi' } }],
  children(scope, { metadata: { name }, spec }) {
    new k8s.KubeConfigMap(scope, 'memo', { metadata: { name }, data: { memo: ${text} } });
  },
});
`;

let project: string;
let client: ApiClient;
let context: string;
const child = { namespace: 'memos-samples', name: 'hello' };
const leaseRef = { namespace: 'memos-system', name: 'kindred-memos' };
const crdType: ResourceType = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  ...{ plural: 'customresourcedefinitions', scope: 'Cluster' },
};

const start = (kubeconfig = cluster.adminKubeconfig, ...more: readonly string[]): Start =>
  new Start({ project, kubeconfig }, `--context=${context}`, ...more);
const lease = async () => recordOf((await client.get(leaseType, leaseRef)) as KubeObject);

/** Waits until the child has this text. */
async function reads(text: string): Promise<void> {
  await waitFor(async () => JSON.stringify(await client.get(owned.ConfigMap, child)).includes(`"memo":"${text}"`), {
    ...{ describe: `the child to say ${text}`, timeout: 30_000, interval: 20 },
  });
}

beforeAll(async () => {
  project = mkdtempSync(join(folder, 'memos-'));
  installKindred(project);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'memos', kindred: { kinds: 'memo.ts' } }));
  writeFileSync(join(project, 'memo.ts'), source('spec.text'));
  client = await adminClient(cluster.adminKubeconfig);
  context = (await kubectlOrThrow(cluster, ['config', 'current-context'])).trim();
});
afterAll(() => client.close());

test('a context that does not exist is told with those that do', async () => {
  const run = new Start({ project, kubeconfig: cluster.adminKubeconfig }, '--context=elsewhere');
  expect(await run.ended).toMatchObject({
    code: 1,
    stdout: '',
    stderr: `kindred: there is no context "elsewhere" in ${cluster.adminKubeconfig}; there are ${context}\n`,
  });
});

test('a user who may not install CRDs is told so before anything is changed', async () => {
  await kubectlOrThrow(cluster, ['-n', 'default', 'create', 'serviceaccount', 'guest']);
  const kubeconfig = await cluster.kubeconfigFor({ namespace: 'default', name: 'guest' });
  const guest = (
    await kubectlOrThrow({ adminKubeconfig: kubeconfig, dataDir: cluster.dataDir }, ['config', 'current-context'])
  ).trim();
  const { code, stderr } = await new Start({ project, kubeconfig }, `--context=${guest}`).ended;
  expect([code, stderr]).toEqual([
    1,
    `kindred: the user of context ${guest} may not create customresourcedefinitions, and dev installs CRDs, permissions and a namespace. ` +
      'Take a context with these rights, or leave --context out: then there is a control plane on this machine\n',
  ]);
});

test('a cluster that is not on this machine is not touched before somebody has said that it is meant', async () => {
  const kubeconfig = join(folder, 'far.json');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config' },
      clusters: [{ name: 'far', cluster: { server: 'https://192.0.2.1:6443' } }],
      contexts: [{ name: 'far', context: { cluster: 'far' } }],
    }),
  );
  const { code, stderr } = await new Start({ project, kubeconfig }, '--context=far').ended;
  expect([code, stderr]).toEqual([
    1,
    'kindred: context far is https://192.0.2.1:6443, which is not on this machine. dev installs CRDs and permissions there, and runs the operator against it. If that is meant, add --yes\n',
  ]);
});

test('the operator runs under its ServiceAccount, what is saved is loaded, and all but the operator stays', async () => {
  const run = start();
  await run.says(/^All 1 objects are Ready/m);
  await reads('hi');
  expect(await client.list(owned.Deployment, { namespace: 'memos-system' })).toMatchObject({ items: [] });
  const requests = await cluster.auditLog();
  const writers = requests.filter(
    ({ verb, objectRef }) => verb === 'create' && objectRef?.resource === 'configmaps' && objectRef.name === 'hello',
  );
  expect(writers.map(({ user }) => user.username)).toEqual(['system:serviceaccount:memos-system:kindred-memos']);
  expect(run.stdout).toContain('its Deployment is left as it is');
  expect(run.stdout).toContain(`kubectl --context=${context} -n memos-samples get events.events.k8s.io`);

  const before = await lease();
  writeFileSync(join(project, 'memo.ts'), source('`${spec.text}!`'));
  await reads('hi!');
  expect((await lease()).holderIdentity).not.toBe(before.holderIdentity);

  run.signal('SIGINT');
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  expectNothingLeft(run);
  expect((await lease()).holderIdentity).toBe('');
  await reads('hi!');
});

test('where an operator holds the Lease, nothing is changed; one that is dead is waited for', async () => {
  const version = async (): Promise<unknown> =>
    ((await client.get(crdType, { name: 'memos.memos.example.com' })) as KubeObject).metadata.resourceVersion;
  const before = await version();
  const hold = async (): Promise<void> => {
    const current = (await client.get(leaseType, leaseRef)) as KubeObject;
    const spec = {
      ...(current['spec'] as object),
      holderIdentity: 'pod-1',
      renewTime: `${new Date().toISOString().slice(0, -1)}000Z`,
    };
    await client.update(
      leaseType,
      { ...current, spec: { ...spec, leaseDurationSeconds: 3 } },
      { fieldManager: 'test' },
    );
  };
  await hold();
  let renewal: Promise<void> = Promise.resolve();
  const renewals = setInterval(() => {
    renewal = hold();
  }, 500);
  writeFileSync(join(project, 'memo.ts'), source('spec.text').replace('A memo.', 'A short memo.'));
  const refused = await start().ended;
  clearInterval(renewals);
  await renewal;
  expect([refused.code, refused.stderr]).toEqual([
    1,
    `kindred: the operator memos runs in the cluster of context ${context} already: pod-1 holds the Lease memos-system/kindred-memos. ` +
      `Two must not write. End it meanwhile, be it another kindred dev or its Deployment: kubectl --context=${context} -n memos-system scale deployment kindred-memos --replicas=0\n`,
  ]);
  expect(await version()).toBe(before);

  const run = start(cluster.adminKubeconfig, '--once');
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  expect(run.stdout).toContain('Looking for up to 3 s whether pod-1 still holds the Lease memos-system/kindred-memos');
  expect(await version()).not.toBe(before);
  expectNothingLeft(run);
});
