import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ExistingCluster } from '../../cli/existing-cluster';
import { localPlatform } from '../../cli/local-platform';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned } from '../../constructs/kube/resource-type';
import { CertificateAuthority } from '../../local/certificates';
import type { ApiClient } from '../../operator/client/api-client';
import { leaseType, recordOf } from '../../operator/leader/lease';
import { kubeconfigClient } from '../../testing';
import { useControlPlane } from '../support/use-control-plane';
import { kubectlOrThrow } from '../../testing/kubectl';
import { waitFor } from '../../testing/wait-for';
import { projectOf } from '../support/kindred-project';
import { installKindred, root } from '../support/project-folder';
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
  client = await kubeconfigClient(cluster.adminKubeconfig);
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

/** A ServiceAccount's kubeconfig, and its context. */
async function userOf(name: string): Promise<{ readonly kubeconfig: string; readonly guest: string }> {
  await kubectlOrThrow(cluster, ['-n', 'default', 'create', 'serviceaccount', name]);
  const kubeconfig = await cluster.kubeconfigFor({ namespace: 'default', name });
  const view = ['config', 'current-context'];
  const guest = await kubectlOrThrow({ adminKubeconfig: kubeconfig, dataDir: cluster.dataDir }, view);
  return { kubeconfig, guest: guest.trim() };
}

const takeAnother =
  'Take a context with the rights to install CRDs, permissions and an operator, or leave --context out: then there is a control plane on this machine\n';

test('a user who may not install all of it is told so before anything is changed', async () => {
  const { kubeconfig, guest } = await userOf('guest');
  const { code, stderr } = await new Start({ project, kubeconfig }, `--context=${guest}`).ended;
  expect([code, stderr]).toEqual([
    1,
    `kindred: the user of context ${guest} may not create namespaces. ${takeAnother}`,
  ]);
});

test('a user who may not give the rights that the operator needs is told so before anything is changed', async () => {
  const { kubeconfig, guest } = await userOf('installer');
  const rules = JSON.stringify({
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'installer' } },
    rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'create', 'patch', 'update'] }],
  });
  await kubectlOrThrow(cluster, ['apply', '-f', '-'], rules);
  await kubectlOrThrow(cluster, [
    ...['create', 'clusterrolebinding', 'installer', '--clusterrole=installer', '--serviceaccount=default:installer'],
  ]);
  const { code, stderr } = await new Start({ project, kubeconfig }, `--context=${guest}`).ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^kindred: ClusterRole \S+ cannot be installed: clusterroles\.rbac\.authorization\.k8s\.io "\S+" is forbidden: .*\n$/,
  );
  expect(stderr.endsWith(takeAnother)).toBe(true);
  expect(await kubectlOrThrow(cluster, ['get', 'crd,namespace', '-o', 'name'])).not.toContain('memos');
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

test('an operator that is installed in another namespace keeps its permissions', async () => {
  const { code, stderr } = await start(cluster.adminKubeconfig, '--operator-namespace=memos-dev').ended;
  expect([code, stderr]).toEqual([
    1,
    `kindred: the operator is installed in the namespace memos-system of the cluster of context ${context} (ClusterRoleBinding kindred-memos), ` +
      'and would lose its permissions to one in memos-dev. Take the same namespace: --operator-namespace=memos-system\n',
  ]);
  expect(await kubectlOrThrow(cluster, ['get', 'namespaces', '-o', 'name'])).not.toContain('memos-dev');
});

test('a namespace that is there already gets the samples and nothing else', async () => {
  await kubectlOrThrow(cluster, ['create', 'namespace', 'team']);
  const before = await kubectlOrThrow(cluster, ['get', 'namespace', 'team', '-o', 'json']);
  expect(await start(cluster.adminKubeconfig, '-n', 'team', '--once').ended).toMatchObject({ code: 0, stderr: '' });
  expect(await kubectlOrThrow(cluster, ['get', 'namespace', 'team', '-o', 'json'])).toBe(before);
  expect(await kubectlOrThrow(cluster, ['-n', 'team', 'get', 'resourcequotas,limitranges', '-o', 'name'])).toBe('');
  expect(await kubectlOrThrow(cluster, ['-n', 'team', 'get', 'memos,configmaps', '-o', 'name'])).toContain(
    'memo.memos.example.com/hello\n',
  );
  // What installs a platform elsewhere keeps a list of it, by which it deletes what is no longer wanted.
  expect(await kubectlOrThrow(cluster, ['-n', 'memos-system', 'get', 'configmaps', '-o', 'name'])).toBe(
    'configmap/kube-root-ca.crt\n',
  );
});

test('where the holder of the Lease does not give it up, nothing is changed', async () => {
  const before = (await client.get(leaseType, leaseRef)) as KubeObject;
  let hold: Promise<unknown> = Promise.resolve();
  const renew = async (): Promise<void> => {
    const current = (await client.get(leaseType, leaseRef)) as KubeObject;
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    const spec = { holderIdentity: 'pod-1', leaseDurationSeconds: 15, renewTime };
    await client.update(leaseType, { ...current, spec }, { fieldManager: 'test' });
  };
  await renew();
  const renewals = setInterval(() => {
    // A conflict with the request for the Lease: the next one succeeds.
    hold = renew().catch(() => undefined);
  }, 300);
  process.env['KUBECONFIG'] = cluster.adminKubeconfig;
  const said: string[] = [];
  const never = new AbortController().signal;
  const options = { context, yes: false, print: (line: string) => void said.push(line), giveUpTimeoutMs: 2_000 };
  const existing = await ExistingCluster.find(options, never);
  const platform = localPlatform(projectOf('memos', {}), {
    ...options,
    operators: [],
    pods: false,
    samplesNamespace: undefined,
    authority: new CertificateAuthority('test'),
  });
  await expect(existing.takeLeases(platform, { which: 'existing', signal: never })).rejects.toThrow(
    `pod-1 does not give up the Lease memos-system/kindred-memos in the cluster of context ${context}: it is another kindred dev, or an operator of an earlier version. ` +
      `Two must not write, so end it, for example: kubectl --context=${context} -n memos-system scale deployment kindred-memos --replicas=0`,
  );
  expect(said).toEqual(['Waiting for pod-1 to give up the Lease memos-system/kindred-memos.']);
  const asked = (await client.get(leaseType, leaseRef)) as KubeObject;
  expect(asked.metadata.annotations).toEqual({ 'kindred.dev/preferred-holder': existing.preferred });
  clearInterval(renewals);
  await hold;
  await existing.stop();
  const after = (await client.get(leaseType, leaseRef)) as KubeObject;
  expect(after.metadata.annotations).toBeUndefined();
  await client.update(leaseType, { ...after, spec: before['spec'] }, { fieldManager: 'test' });
});

/** The operator as its pod runs it. */
class Pod {
  log = '';
  readonly ended: Promise<number | null>;
  private readonly child;

  constructor(kubeconfig: string) {
    const args = ['--leader-elect', '--lease-name=kindred-memos', '--lease-namespace=memos-system', '--metrics-port=0'];
    this.child = spawn(
      process.execPath,
      [join(root, 'dist/cli.cjs'), `--project=${project}`, 'run', `--kubeconfig=${kubeconfig}`, ...args],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    this.child.stdout.on('data', (data: Buffer) => (this.log += String(data)));
    this.ended = new Promise((resolve) => this.child.once('close', resolve));
  }

  async says(text: string): Promise<void> {
    await waitFor(() => this.log.includes(text), { describe: `the pod to say ${text}`, timeout: 40_000 });
  }

  async stop(): Promise<void> {
    this.child.kill();
    await this.ended;
  }
}

test('an operator that runs there ends its work and waits, between two versions too; after dev it goes on', async () => {
  writeFileSync(join(project, 'memo.ts'), source('spec.text'));
  const kubeconfig = await cluster.kubeconfigFor({ namespace: 'memos-system', name: 'kindred-memos' });
  const first = new Pod(kubeconfig);
  await first.says('became leader');

  const run = start();
  await run.says(/^All 1 objects are Ready/m);
  expect(run.stdout).toMatch(/^Waiting for \S+ to give up the Lease memos-system\/kindred-memos\.$/m);
  expect(await first.ended).toBe(0);
  expect(first.log).toMatch(/"reason":"the Lease is asked for, for kindred-dev-\S+"/);

  // As the kubelet does.
  const second = new Pod(kubeconfig);
  await second.says('waiting to become leader');
  const ours = await lease();
  writeFileSync(join(project, 'memo.ts'), source('`${spec.text}?`'));
  await reads('hi?');
  expect((await lease()).leaseTransitions).toBe(ours.leaseTransitions + 1);
  expect(second.log).not.toContain('became leader');

  // A Lease that nobody released expires: see the tests of the election.
  run.signal('SIGINT');
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  await second.says('became leader');
  expectNothingLeft(run);
  await second.stop();
});
