import { readFileSync } from 'node:fs';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { Cluster, HelloApp } from '../../../constructs/kinds';
import { provisioner } from '../../../constructs/platform';
import { useControlPlane } from '../../support/use-control-plane';
import { kubectl } from '../../../testing/kubectl';
import { PlatformComponent, type PlatformComponentArgs } from '../../../stacks/components';
import { Engine, kubernetesProvider } from '../../support/pulumi-engine';

jest.setTimeout(300_000);

const plane = useControlPlane({ components: 'full' });

const operator = { name: 'operator', image: 'registry.test/op:1', replicas: 1, kinds: [HelloApp] };
const keeper = provisioner({ image: 'registry.test/pro:1', replicas: 1, kinds: [Cluster] });

type Operator = typeof keeper;

const platform =
  (first: Operator | Partial<PlatformComponentArgs>, ...rest: readonly Operator[]) =>
  () => {
    const kubeconfig = readFileSync(plane.adminKubeconfig, 'utf8');
    const [operators, args] = 'image' in first ? [[first, ...rest], {}] : [rest, first];
    new PlatformComponent('kindred', { kubeconfig, operators, ...args });
    return {};
  };

async function run(...args: readonly string[]): Promise<string> {
  const { stdout, stderr, code } = await kubectl(plane, args);
  if (code !== 0) throw new Error(stderr);
  return stdout.trim();
}

const uidOf = async (...object: readonly string[]): Promise<string> =>
  (JSON.parse(await run('get', '-o', 'json', ...object)) as KubeObject & { metadata: { uid: string } }).metadata.uid;

const namespace = ['namespace', 'kindred-system'];
const state = ['secret', '-n', 'kindred-system', 'prod-state'];

test("a provisioner's state outlives it: with its platform, and with a platform that gets it, loses it and is made again", async () => {
  let engine = new Engine({ providers: [kubernetesProvider()] });
  await engine.up(platform(operator));
  const before = await uidOf(...namespace);

  // Not another namespace: Pulumi would take over the old one, and then delete it.
  const added = await engine.up(platform(operator, keeper));
  expect(added.changes.filter(({ op }) => /replace|delete/.test(op))).toEqual([]);
  expect(await uidOf(...namespace)).toBe(before);
  await run('create', 'secret', 'generic', '-n', 'kindred-system', 'prod-state', '--from-literal=state=made');
  const kept = await uidOf(...state);

  await engine.destroy();
  expect(await run('get', 'deployments', '-n', 'kindred-system', '-o', 'name')).toBe('');
  expect(await uidOf(...state)).toBe(kept);
  // Somebody has changed in the meantime what stayed behind, and owns the field now.
  await run('label', '--overwrite', ...namespace, 'pod-security.kubernetes.io/warn=baseline');

  engine = new Engine({ providers: [kubernetesProvider()] });
  await engine.up(platform(operator, keeper));
  expect(await uidOf(...namespace)).toBe(before);
  expect(await uidOf(...state)).toBe(kept);
  expect(await run('get', ...namespace, '--show-labels')).toContain('pod-security.kubernetes.io/warn=restricted');
  expect((await engine.up(platform(operator, keeper))).summary).toEqual([]);

  const removed = await engine.up(platform(operator));
  expect(removed.changes.filter(({ name }) => name === 'kindred/namespace')).toEqual([]);
  await engine.destroy();
  expect(await uidOf(...state)).toBe(kept);
});

test('a namespace that somebody else keeps from now on loses nothing, and may be given back', async () => {
  const engine = new Engine({ providers: [kubernetesProvider()] });
  await engine.up(platform(operator));
  await run('create', 'configmap', '-n', 'kindred-system', 'of-others');
  const others = ['configmap', '-n', 'kindred-system', 'of-others'];
  const before = await uidOf(...others);
  const deployment = ['deployment', '-n', 'kindred-system', 'kindred-operator'];
  const installed = await uidOf(...deployment);
  for (const createNamespace of [false, true, false]) {
    await engine.up(platform({ createNamespace }, operator));
    expect((await engine.up(platform({ createNamespace }, operator))).summary).toEqual([]);
    expect([await uidOf(...others), await uidOf(...deployment)]).toEqual([before, installed]);
  }
  await engine.destroy();
  expect(await uidOf(...others)).toBe(before);
  await run('delete', ...namespace);
});

test('a namespace that is not to stay goes with the stack, and one that stands already is not taken over', async () => {
  const engine = new Engine({ providers: [kubernetesProvider()] });
  await engine.up(platform({ keepNamespace: false }, operator));
  await engine.destroy();
  expect(await run('get', '--ignore-not-found', ...namespace)).toBe('');
  await run('create', ...namespace);
  await expect(engine.up(platform({ keepNamespace: false }, operator))).rejects.toThrow(
    /kindred\/namespace: .*already exists/,
  );
  expect(await run('get', ...namespace, '--show-labels')).not.toContain('pod-security');
});

test('monitoring on a cluster without the Prometheus operator fails in the preview', async () => {
  const engine = new Engine({ providers: [kubernetesProvider()] });
  const monitored = () => {
    const kubeconfig = readFileSync(plane.adminKubeconfig, 'utf8');
    new PlatformComponent('kindred', { kubeconfig, operators: [operator], monitoring: {} });
    return {};
  };
  await expect(engine.preview(monitored)).rejects.toThrow(
    /needs-the-prometheus-operator\/podmonitors\.monitoring\.coreos\.com/,
  );
});
