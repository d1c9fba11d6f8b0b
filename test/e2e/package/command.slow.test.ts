import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { useControlPlane } from '../../support/use-control-plane';
import { kubectlOrThrow } from '../../../testing/kubectl';
import { peerDependencies } from '../../../package.json';
import { codeBlocks, filesIn } from '../../support/code-blocks';
import { Consumer } from './consumer';

jest.setTimeout(300_000);

// The kind of docs/add-your-own-kind.md, with the command of the packed package and nothing else that is written by hand.
const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'add-your-own-kind.md'), 'utf8');
const { 'website.ts': website = '' } = filesIn(codeBlocks(page));
const { cdk8s, 'cdk8s-plus-27': plus, constructs, zod } = peerDependencies;
const plane = useControlPlane({ components: 'full' });
const operators: ChildProcess[] = [];
let project: Consumer;

beforeAll(async () => {
  const dependencies = { cdk8s, 'cdk8s-plus-27': plus, constructs, zod };
  const described = { name: 'website', version: '1.0.0', kindred: { kinds: 'website.ts' }, dependencies };
  const site = {
    apiVersion: 'sites.example.com/v1',
    kind: 'Website',
    metadata: { name: 'mine' },
    spec: { page: 'Hi' },
  };
  project = await Consumer.of({
    ...{ 'package.json': JSON.stringify(described), 'website.ts': website, 'site.json': JSON.stringify(site) },
  });
});

afterAll(() => {
  for (const operator of operators) operator.kill('SIGKILL');
  project.remove();
});

test('render and docs', async () => {
  expect(await project.kindred('render', 'site.json', '-o', 'tree')).toBe(
    'Website default/mine\n├─ ConfigMap mine\n└─ Deployment mine\n',
  );
  await project.kindred('docs');
  const text = readFileSync(join(project.folder, 'docs/kinds/websites.sites.example.com.md'), 'utf8');
  expect(text).toContain('Number of pods.');
  await project.kindred('docs', '--check');
});

test('synth and run: what is written is applied, and the operator brings the sample to Ready under its own permissions', async () => {
  await project.kindred('synth');
  const apply = (name: string) =>
    kubectlOrThrow(plane, ['apply', '--server-side', '-f', join(project.folder, 'dist/manifests', name)]);
  for (const name of ['1-crds.yaml', '2-platform.yaml']) await apply(name);
  await kubectlOrThrow(plane, ['wait', '--for=condition=Established', 'crd/websites.sites.example.com']);
  const kubeconfig = await plane.kubeconfigFor({ namespace: 'website-system', name: 'kindred-website' });
  const args = ['run', `--kubeconfig=${kubeconfig}`, '--metrics-port=0', '--log-level=error'];
  const operator = spawn(process.execPath, [join(project.folder, 'node_modules/.bin/kindred'), ...args], {
    ...{ cwd: project.folder, stdio: ['ignore', 'inherit', 'inherit'] },
  });
  operators.push(operator);
  await apply('3-samples.yaml');
  const ready = ['wait', '--for=condition=Ready', 'website/hello', '-n', 'website-samples', '--timeout=60s'];
  expect(await kubectlOrThrow(plane, ready)).toContain('condition met');
  operator.kill('SIGTERM');
  expect(await once(operator, 'exit')).toEqual([0, null]);
});

test('synth --format=helm', async () => {
  await project.kindred('synth', '--format=helm', '--image=sites:1');
  expect(readFileSync(join(project.folder, 'dist/chart/Chart.yaml'), 'utf8')).toContain('name: website\n');
});

test('build: the image has the operator of the kinds', async () => {
  const built = JSON.parse(await project.kindred('build', '--base=local', '--output=json')) as {
    readonly archive: { readonly name: string; readonly file: string };
  };
  expect(built.archive).toEqual({
    name: 'docker.io/library/website-operator:1.0.0',
    file: join(project.folder, 'dist/operator.tar'),
  });
});

test('dev --once: control plane, CRDs, operator and samples', async () => {
  const printed = await project.kindred('dev', '--once', '--file=site.json');
  expect(printed).toContain('under the ServiceAccount website-system/kindred-website and its RBAC alone');
  expect(printed).toMatch(/^Website website-samples\/hello Ready=True/m);
  expect(printed).toMatch(/^Website website-samples\/mine Ready=True/m);
});
