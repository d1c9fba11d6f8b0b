import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { CronTab, HelloApp } from '../../../constructs/kinds';
import { owned } from '../../../constructs/kube/resource-type';
import { operatorDefaults } from '../../../constructs/operator/operator-props';
import { serverImage } from '../../../local';
import { kubeconfigClient } from '../../../testing';
import { useControlPlane } from '../../support/use-control-plane';
import { kubectlOrThrow } from '../../../testing/kubectl';
import { expectChildren, isReadyNow } from '../../support/assertions';
import { temporaryFolder } from '../../support/temporary-folder';
import { TestEnv } from '../../support/test-env';
import { describeOnNodes } from './on-nodes';
import {
  OperatorPods,
  cutOff,
  dist,
  importOperatorImage,
  isReadyPod,
  peakMemoryMiB,
  podOf,
  processOf,
} from './operator-pods';

jest.setTimeout(300_000);

const [image, nextImage] = ['kindred.local/operator:1', 'kindred.local/operator:2'] as const;

/** Until a Lease whose holder is gone has run out and another process leads: 15 s, and what a busy machine takes. */
const takeoverSeconds = 40;

/** The platform as `synth` writes it and kubectl applies it. The tests build on each other. */
describeOnNodes('the operator as its Deployment', () => {
  const plane = useControlPlane({ nodes: 2 });
  const env = new TestEnv(plane);
  const operator = new OperatorPods(plane, 'kindred-operator', 'kindred-system');
  const folder = temporaryFolder('kindred-operator-');
  const hello = { namespace: '', name: 'hello' };

  beforeAll(async () => {
    env.client = await kubeconfigClient(plane.adminKubeconfig);
    await importOperatorImage(plane, { folder, tag: image });
    await importOperatorImage(plane, { folder, tag: nextImage });
    execFileSync(process.execPath, [
      join(dist, 'cli.cjs'),
      `--project=${join(dist, '..')}`,
      'synth',
      `--image=${image}`,
      `--out=${folder}`,
    ]);
    const kubectl = (...args: readonly string[]): Promise<string> => kubectlOrThrow(plane, args);
    await kubectl('apply', '--server-side', '-f', join(folder, '1-crds.yaml'));
    await kubectl('wait', '--for=condition=Established', 'crd', '-l', 'app.kubernetes.io/part-of=kindred');
    await kubectl('apply', '--server-side', '-f', join(folder, '2-platform.yaml'));
    await operator.rolledOut();
    hello.namespace = await env.namespace('pods');
  });
  afterAll(() => env.close());

  /** The versions of the objects of these tests and of their children. */
  async function versions(): Promise<readonly string[]> {
    const types = [HelloApp.type, CronTab.type, owned.Deployment, owned.CronJob];
    const lists = await Promise.all(types.map((type) => env.client.list(type, { namespace: hello.namespace })));
    return lists
      .flatMap(({ items }) => items)
      .map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.resourceVersion ?? ''}`)
      .sort();
  }

  async function readyHello(): Promise<void> {
    const app = await env.waitUntil(HelloApp.type, hello, 'Ready', isReadyNow);
    await expectChildren(env, HelloApp, app);
  }

  test('both pods are Ready, one on each node, under the restricted Pod Security Standard', async () => {
    const pods = await operator.pods();
    expect(pods.map(({ spec }) => spec.nodeName).sort()).toEqual(plane.nodes.map(({ name }) => name));
    expect(pods.every(isReadyPod)).toBe(true);
    expect(pods.map(({ status }) => status?.containerStatuses?.[0]?.restartCount)).toEqual([0, 0]);
    const label = 'pod-security.kubernetes.io/enforce';
    expect(await operator.kubectl('get', 'namespace', operator.namespace, '--show-labels')).toContain(
      `${label}=restricted`,
    );
    // The API server looks at the pods that run when a namespace gets the label, and warns of those that are not so.
    const elsewhere = await env.kubectl([
      'label',
      '--dry-run=server',
      '--overwrite',
      'namespace',
      operator.namespace,
      `${label}=baseline`,
    ]);
    expect(elsewhere).toMatchObject({ code: 0 });
    const again = await env.kubectl([
      'label',
      '--dry-run=server',
      '--overwrite',
      'namespace',
      operator.namespace,
      `${label}=restricted`,
    ]);
    expect(again).toMatchObject({ code: 0, stderr: '' });
  });

  test("the pods of a HelloApp run, and every write is made with the leader's own token", async () => {
    await env.createOfKind(HelloApp, hello, { image: serverImage, size: 2 });
    await readyHello();
    const { pod } = await operator.leader();
    const writes = await operator.writesOf();
    expect(new Set(writes.map(podOf))).toEqual(new Set([pod]));
    expect(writes.map(({ verb, objectRef }) => `${verb} ${String(objectRef?.resource)}`)).toContain(
      'create deployments',
    );
    expect(writes.filter(({ annotations }) => annotations?.['authorization.k8s.io/decision'] === 'forbid')).toEqual([]);
  });

  test('metrics are served through the Service', async () => {
    const address = await operator.kubectl(
      'get',
      'service',
      'kindred-operator-metrics',
      '-o',
      'jsonpath={.spec.clusterIP}',
    );
    const asked = ['-n', hello.namespace, 'exec', 'deployment/hello', '--', '/pod', 'get'];
    const seen = new Set<string>();
    await env.eventually('the leader and the standby to answer for the Service', async () => {
      const { stdout } = await env.kubectl([...asked, `http://${address}:${operatorDefaults.metricsPort}/metrics`]);
      seen.add(
        /^leader_election_master_status\{name="kindred-operator"\} (\d)$/m.exec(stdout)?.[1] ?? stdout.slice(0, 200),
      );
      return seen.size === 2 ? true : undefined;
    });
    expect([...seen].sort()).toEqual(['0', '1']);
  });

  test('an eviction respects the PodDisruptionBudget', async () => {
    const [one, two] = await operator.pods();
    const evict = (name: string) => {
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace: operator.namespace, name } };
      const path = `/api/v1/namespaces/${operator.namespace}/pods/${name}/eviction`;
      return env.kubectl(['create', '--raw', path, '-f', '-'], JSON.stringify(eviction));
    };
    expect(await evict(one!.metadata.name)).toMatchObject({ code: 0 });
    expect((await evict(two!.metadata.name)).stderr).toContain("violate the pod's disruption budget");
    await operator.rolledOut();
    await env.eventually('the budget to allow the next one', async () =>
      (await evict(two!.metadata.name)).code === 0 ? true : undefined,
    );
    await operator.rolledOut();
    await readyHello();
  });

  test('when the node of the leader is drained, the other pod leads at once', async () => {
    const { pod, identity } = await operator.leader();
    const node = (await operator.pods()).find(({ metadata }) => metadata.name === pod)!.spec.nodeName!;
    try {
      const drained = operator.kubectl(
        'drain',
        node,
        '--pod-selector=app.kubernetes.io/instance=kindred-operator',
        '--timeout=120s',
      );
      await operator.nextLeader(identity);
      await env.patchSpec(HelloApp, hello, { size: 1 });
      await readyHello();
      await drained;
    } finally {
      await operator.kubectl('uncordon', node);
    }
    await operator.rolledOut();
  });

  test("the leader's process is killed: another leads once the Lease has run out, and nothing is lost", async () => {
    const { pod, identity } = await operator.leader();
    process.kill(processOf(pod), 'SIGKILL');
    await env.patchSpec(HelloApp, hello, { size: 2 });
    expect(await operator.nextLeader(identity)).toBeLessThan(takeoverSeconds);
    await readyHello();
    await operator.rolledOut();
    const killed = (await operator.pods()).find(({ metadata }) => metadata.name === pod);
    expect(killed?.status?.containerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 137 } },
    });
  });

  test("the leader's way to the API server is cut: it ends before another leads, and comes back as a standby", async () => {
    const { pod, identity } = await operator.leader();
    const address = await operator.kubectl(
      'get',
      'service',
      '-n',
      'default',
      'kubernetes',
      '-o',
      'jsonpath={.spec.clusterIP}',
    );
    const before = await operator.pods();
    const restarts = before.find(({ metadata }) => metadata.name === pod)!.status!.containerStatuses![0]!.restartCount;
    const heal = await cutOff(processOf(pod), address);
    try {
      await env.patchSpec(HelloApp, hello, { size: 1 });
      expect(await operator.nextLeader(identity)).toBeLessThan(takeoverSeconds);
      await readyHello();
      const next = await operator.leader();
      expect(next.pod).not.toBe(pod);
      // Whoever led had ended before the next one wrote.
      const lastWrite = (await operator.writesOf(pod)).at(-1)?.stageTimestamp ?? '';
      const firstWrite = (await operator.writesOf(next.pod)).find(({ stageTimestamp }) => stageTimestamp > lastWrite);
      expect(firstWrite).toBeDefined();
      expect((await operator.writesOf(pod)).at(-1)?.stageTimestamp ?? '').toBe(lastWrite);
    } finally {
      await heal();
    }
    await env.eventually(
      'the pod that was cut off to be ready again',
      async () => {
        const found = (await operator.pods()).find(({ metadata }) => metadata.name === pod);
        return found !== undefined && isReadyPod(found) && found.status!.containerStatuses![0]!.restartCount > restarts
          ? true
          : undefined;
      },
      180_000,
    );
  });

  test('5,000 objects need less memory than the limit, and an update of the operator writes to none of them', async () => {
    const count = 5000;
    const names = Array.from({ length: count }, (_, index) => `tab-${String(index)}`);
    const spec = { cronSpec: '0 0 1 1 *', image: serverImage };
    const queue = [...names];
    const creating = Array.from({ length: 16 }, async () => {
      for (let name = queue.pop(); name !== undefined; name = queue.pop())
        await env.createOfKind(CronTab, { namespace: hello.namespace, name }, spec);
    });
    await Promise.all(creating);
    const allReady = async (): Promise<true | undefined> => {
      const { items } = await env.client.list(CronTab.type, { namespace: hello.namespace });
      return items.length === count && items.every(isReadyNow) ? true : undefined;
    };
    await env.eventually('all to be Ready', allReady, 240_000);
    const { pod, identity } = await operator.leader();
    const { memoryLimitMiB } = operatorDefaults;
    expect(peakMemoryMiB(processOf(pod))).toBeLessThan(memoryLimitMiB);

    const [before, written] = [await versions(), (await operator.writesOf()).length];
    expect(before).toHaveLength(2 * count + 2);
    await operator.kubectl('set', 'image', 'deployment/kindred-operator', `operator=${nextImage}`);
    await operator.rolledOut();
    await operator.nextLeader(identity);
    // The new leader answers, so it has read and compared everything.
    await env.patchSpec(HelloApp, hello, { size: 2 });
    await readyHello();
    const changed = (await versions()).filter((version) => !before.includes(version));
    expect(changed.map((version) => version.split(' ').slice(0, 2).join(' '))).toEqual([
      'Deployment hello',
      'HelloApp hello',
    ]);
    const writes = (await operator.writesOf()).slice(written);
    expect(new Set(writes.map(({ objectRef }) => objectRef?.name))).toEqual(new Set(['hello']));
    const pods = await operator.pods();
    expect(pods.map(({ status }) => status?.containerStatuses?.[0]?.restartCount)).toEqual([0, 0]);
    for (const { metadata } of pods) expect(peakMemoryMiB(processOf(metadata.name))).toBeLessThan(memoryLimitMiB);
  });
});
