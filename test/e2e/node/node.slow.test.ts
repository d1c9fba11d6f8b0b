import { randomUUID } from 'node:crypto';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import { serverImage } from '../../../local';
import { expectChildren, isReadyNow } from '../../support/assertions';
import { kubectlOrThrow } from '../../../testing/kubectl';
import { useTestEnv } from '../../support/test-env';
import { describeOnNodes } from './on-nodes';
import { PODS, isReadyPod, type Pod } from './operator-pods';

jest.setTimeout(120_000);

const WEBHOOKS: ResourceType = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  scope: 'Cluster',
};

/** A webhook at a Service, for the ConfigMaps of a namespace. */
const webhookAt = (namespace: string, name: string): object => ({
  name: `${name}.${namespace}.example.com`,
  clientConfig: { service: { namespace, name, port: 80 } },
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
  rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
});

describeOnNodes('nodes that run containers', () => {
  const env = useTestEnv({ kinds: [HelloApp], nodes: 2 });
  let namespace: string;

  beforeEach(async () => {
    namespace = await env.namespace('node');
  });
  // So that what a test left does not take the CPU of the next one.
  afterEach(() => kubectl('delete', 'namespace', namespace, '--wait=false'));

  const kubectl = (...args: readonly string[]): Promise<string> =>
    kubectlOrThrow(env.plane, ['-n', namespace, ...args]);

  /** Runs the server of `local/parts/node/serve.go` in a pod, and waits until it is ready. */
  async function runServer(name: string, container: object = {}): Promise<Pod> {
    const containers = [{ name: 'server', image: serverImage, ...container }];
    const spec = { containers, terminationGracePeriodSeconds: 1 };
    await env.create(PODS, { namespace, name, labels: { app: name } }, { spec });
    return env.waitUntil(PODS, { namespace, name }, 'ready', isReadyPod);
  }

  const podsOf = async (): Promise<Pod[]> => (await env.client.list(PODS, { namespace })).items as Pod[];

  /** Asks a server from inside of a pod. */
  const ask = (pod: string, url: string): Promise<string> => kubectl('exec', pod, '--', '/pod', 'get', url);

  test('both are Ready with the version of the control plane', async () => {
    const columns = '{range .items[*]}{.metadata.name} {.status.nodeInfo.kubeletVersion}{"\\n"}{end}';
    const nodes = await kubectl('get', 'nodes', '-o', `jsonpath=${columns}`);
    expect(nodes).toBe(env.plane.nodes.map(({ name }) => `${name} ${env.plane.version}\n`).join(''));
  });

  test('a pod runs: logs, exec, its environment, and the API server as its ServiceAccount', async () => {
    await runServer('one', { env: [{ name: 'GREETING', value: 'hello' }] });
    expect(await kubectl('logs', 'one')).toContain('one listens on port 8080');
    expect(await ask('one', 'http://127.0.0.1:8080/env?name=GREETING')).toBe('hello\n');
    const host = (await ask('one', 'http://127.0.0.1:8080/env?name=KUBERNETES_SERVICE_HOST')).trim();
    expect(await ask('one', `https://${host}/version`)).toContain(env.plane.version);
    const secrets = `https://${host}/api/v1/namespaces/${namespace}/secrets`;
    await expect(ask('one', secrets)).rejects.toThrow('answered 403 Forbidden');
  });

  test('pods of both nodes reach each other, a Service reaches them, and so does the API server', async () => {
    const [one, two] = env.plane.nodes.map(({ name }) => name);
    await kubectl('create', 'deployment', 'web', `--image=${serverImage}`, '--replicas=4', '--port=8080');
    await kubectl('expose', 'deployment', 'web', '--port=80', '--target-port=8080');
    await kubectl('rollout', 'status', 'deployment/web', '--timeout=60s');
    const pods = await podsOf();
    expect([...new Set(pods.map(({ spec }) => spec.nodeName))].sort()).toEqual([one, two]);

    const [asking] = pods;
    for (const { metadata, status } of pods) {
      const url = `http://${status?.podIP ?? ''}:8080/direct`;
      expect(await ask(asking!.metadata.name, url)).toBe(`${metadata.name} /direct\n`);
    }
    const address = await kubectl('get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIP}');
    const answered = new Set<string>();
    await env.eventually('every pod to answer for the Service', async () => {
      answered.add(await ask(asking!.metadata.name, `http://${address}/service`));
      return answered.size === pods.length ? true : undefined;
    });
    const proxied = await kubectl('get', '--raw', `/api/v1/namespaces/${namespace}/services/web:80/proxy/proxied`);
    expect(pods.map(({ metadata }) => `${metadata.name} /proxied\n`)).toContain(proxied);

    // The server speaks no TLS, and its answer shows that the API server came through to it.
    await env.create(WEBHOOKS, { name: namespace }, { webhooks: [webhookAt(namespace, 'web')] });
    const { stderr } = await env.kubectl(['-n', namespace, 'create', 'configmap', 'refused']);
    await kubectl('delete', 'validatingwebhookconfiguration', namespace);
    expect(stderr).toContain('server gave HTTP response to HTTPS client');
  });

  test('a pod that is not ready gets no requests of its Service; one that is not alive is restarted', async () => {
    const probe = { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1, failureThreshold: 1 };
    await runServer('unready', { readinessProbe: probe });
    await kubectl('expose', 'pod', 'unready', '--port=80', '--target-port=8080');
    const endpoints = (): Promise<string> =>
      kubectl('get', 'endpointslices', '-o', 'jsonpath={.items[*].endpoints[*].conditions.ready}');
    await env.eventually('the endpoint to be ready', async () => ((await endpoints()) === 'true' ? true : undefined));
    await ask('unready', 'http://127.0.0.1:8080/healthz?set=503');
    await env.eventually('the endpoint not to be ready', async () =>
      (await endpoints()) === 'false' ? true : undefined,
    );

    await runServer('dead', { livenessProbe: probe });
    await ask('dead', 'http://127.0.0.1:8080/healthz?set=503');
    const restarted = ({ status }: Pod): boolean => status?.containerStatuses?.[0]?.restartCount === 1;
    await env.waitUntil(
      PODS,
      { namespace, name: 'dead' },
      'restarted, and ready',
      (pod) => restarted(pod) && isReadyPod(pod),
    );
    expect(await kubectl('get', 'events')).toContain('Liveness probe failed: HTTP probe failed with statuscode: 503');
  });

  test('a container that ends is started again; one that needs more memory than its limit is killed', async () => {
    await runServer('ends');
    await expect(ask('ends', 'http://127.0.0.1:8080/exit?code=3')).rejects.toThrow();
    const ended = await env.waitUntil(
      PODS,
      { namespace, name: 'ends' },
      'restarted',
      (pod) => isReadyPod(pod) && pod.status?.containerStatuses?.[0]?.restartCount === 1,
    );
    expect(ended.status?.containerStatuses?.[0]?.lastState.terminated).toMatchObject({ reason: 'Error', exitCode: 3 });

    await runServer('eats', { resources: { limits: { memory: '64Mi' } } });
    await expect(ask('eats', 'http://127.0.0.1:8080/use?mb=200')).rejects.toThrow();
    const killed = await env.waitUntil(
      PODS,
      { namespace, name: 'eats' },
      'restarted',
      (pod) => pod.status?.containerStatuses?.[0]?.restartCount === 1,
    );
    const { terminated } = killed.status!.containerStatuses![0]!.lastState;
    expect(terminated).toMatchObject({ reason: 'OOMKilled', exitCode: 137 });
  });

  test('an eviction respects the PodDisruptionBudget, and a drained node runs no pod of it', async () => {
    await kubectl('create', 'deployment', 'web', `--image=${serverImage}`, '--replicas=2');
    await kubectl('rollout', 'status', 'deployment/web', '--timeout=60s');
    await kubectl('create', 'poddisruptionbudget', 'web', '--selector=app=web', '--min-available=2');
    const allowed = (): Promise<string> => kubectl('get', 'pdb', 'web', '-o', 'jsonpath={.status.disruptionsAllowed}');
    await env.eventually('the budget to count its pods', async () => ((await allowed()) === '0' ? true : undefined));
    const [pod] = await podsOf();
    const { name } = pod!.metadata;
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name } };
    const evict = () =>
      env.kubectl(
        ['create', '--raw', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, '-f', '-'],
        JSON.stringify(eviction),
      );
    const refused = await evict();
    expect(refused.stderr).toContain("Cannot evict pod as it would violate the pod's disruption budget");

    await kubectl('patch', 'pdb', 'web', '--type=merge', '-p', '{"spec":{"minAvailable":1}}');
    await env.eventually('the budget to allow one', async () => ((await allowed()) === '1' ? true : undefined));
    const node = pod!.spec.nodeName ?? '';
    try {
      await kubectl('drain', node, '--pod-selector=app=web', '--timeout=60s');
      await kubectl('rollout', 'status', 'deployment/web', '--timeout=60s');
      const moved = await podsOf();
      expect(moved.map(({ spec }) => spec.nodeName)).not.toContain(node);
    } finally {
      await kubectl('uncordon', node);
    }
  });

  test('the pods of a HelloApp run, are replaced, and are reported as they really are', async () => {
    const ref = { namespace, name: 'hello' };
    await env.createOfKind(HelloApp, ref, { image: serverImage, size: 2 });
    const app = await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await expectChildren(env, HelloApp, app);
    const before = await podsOf();
    expect(before).toHaveLength(2);
    for (const { metadata } of before) {
      expect(await ask(metadata.name, 'http://127.0.0.1:8080/')).toBe(`${metadata.name} /\n`);
    }
    await kubectl('delete', 'pod', before[0]!.metadata.name);
    await env.eventually('two pods that run', async () => {
      const pods = await podsOf();
      const isDone =
        pods.length === 2 &&
        pods.every(isReadyPod) &&
        pods.every(({ metadata }) => metadata.uid !== before[0]!.metadata.uid);
      return isDone ? true : undefined;
    });
    expect((await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow)).status).toMatchObject({
      replicas: 2,
      readyReplicas: 2,
    });

    // The old pod goes on until a new one is ready, which this one never is.
    await env.patchSpec(HelloApp, ref, { image: `kindred.local/absent:${randomUUID()}`, size: 1 });
    await env.eventually('a pod whose image cannot be pulled', async () =>
      (await podsOf()).find(({ status }) =>
        /ErrImagePull|ImagePullBackOff/.test(status?.containerStatuses?.[0]?.state.waiting?.reason ?? ''),
      ),
    );
    expect((await env.get(HelloApp.type, ref)).status).toMatchObject({
      readyReplicas: 1,
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: 'Ready', status: 'False', reason: 'Progressing' }),
      ]) as unknown,
    });

    await env.patchSpec(HelloApp, ref, { image: serverImage });
    expect((await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow)).status).toMatchObject({
      replicas: 1,
      readyReplicas: 1,
    });
    await env.deleteAndWait(HelloApp.type, ref);
    await env.eventually('its pods to be gone', async () => ((await podsOf()).length === 0 ? true : undefined));
    expect(await kubectl('get', 'deployments', '-o', 'name')).toBe('');
    expect((await env.auditLog()).refusals()).toEqual([]);
  });
});
