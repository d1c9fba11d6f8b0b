import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { useControlPlane } from '../support/use-control-plane';
import { kubectl } from '../../testing/kubectl';
import { OperatorProcess } from '../../testing';
import { manifests } from '../../cli/synth';
import { kindredPlatform, testImages } from '../support/kindred-project';

const plane = useControlPlane();
jest.setTimeout(240_000);

const files = manifests(kindredPlatform({ images: testImages }));
let folder: string;

interface OperatorDeployment extends KubeObject {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly { readonly args: string[] }[] } };
  };
}

async function must(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await kubectl(plane, args);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

function file(name: string): string {
  return join(folder, name);
}

/** The operator's command line and account, as its Deployment has them. */
async function startOperator(): Promise<OperatorProcess> {
  const objects = parseAllDocuments(files.get('2-platform.yaml') ?? '').map(
    (document) => document.toJS() as KubeObject,
  );
  const deployment = objects.find(({ kind }) => kind === 'Deployment') as OperatorDeployment;
  const kubeconfig = await plane.kubeconfigFor({ namespace: 'kindred-system', name: deployment.metadata.name });
  return OperatorProcess.start({ kubeconfig, args: deployment.spec.template.spec.containers[0]?.args ?? [] });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kindred-manifests-'));
  for (const [name, text] of files) await writeFile(file(name), text);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test('kubectl applies the files in their order, and deletes them in the reverse one', async () => {
  await must('apply', '-f', file('1-crds.yaml'));
  await must('wait', '--for=condition=Established', '-f', file('1-crds.yaml'));
  // The garbage collector looks for new kinds every 30 seconds only.
  await plane.faults.restartControllerManager();
  await must('apply', '-f', file('2-platform.yaml'));
  await must('apply', '-f', file('3-samples.yaml'));
  const operator = await startOperator();
  try {
    await must('wait', '--for=condition=Ready', '--timeout=120s', '-f', file('3-samples.yaml'));
    expect(await must('diff', '-f', file('3-samples.yaml'))).toBe('');

    await must('delete', '--timeout=60s', '-f', file('3-samples.yaml'));
    await must('wait', '--for=delete', '--timeout=60s', '-n', 'kindred-samples', 'deployments', '--all');
    await must('delete', '--timeout=60s', '-f', file('2-platform.yaml'));
  } finally {
    await operator.kill();
  }
  await must('delete', '--timeout=60s', '-f', file('1-crds.yaml'));

  const left = await must('get', 'namespaces,crds,clusterroles,clusterrolebindings', '-o', 'name');
  expect(left.split('\n').filter((name) => /kindred|clusterprovisioner|helloapp/.test(name))).toEqual([]);
});
