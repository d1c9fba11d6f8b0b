import { owned } from '../../../constructs/kube/resource-type';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { expectedShared } from '../../../testing';
import type { TestEnv } from '../../support/test-env';
import {
  deploymentEdits,
  expectChildren,
  expectDeploymentRestored,
  expectObjects,
  isReadyNow,
  replicasEdit,
} from '../../support/assertions';

const made = { 'my-domain-ops-controller-make': 'true' };

/** The life of one MicroServiceDeploy on a real API server. */
export function microServiceDeployTests(env: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await env.namespace('ms');
  });

  test('the sample gets its children and becomes Ready', async () => {
    const [sample] = MicroServiceDeploy.samples;
    const ref = { namespace, name: sample!.name };
    await env.createOfKind(MicroServiceDeploy, ref, sample!.spec);
    const live = await env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow);
    await expectChildren(env, MicroServiceDeploy, live);
    await expectObjects(env, expectedShared(MicroServiceDeploy, [live]));
    expect(live.status).toMatchObject({ replicas: 3, readyReplicas: 3 });
    expect((await env.get(owned.Deployment, ref)).spec).toMatchObject(deploymentSpec);
    const labels = { ...made, app: 'ms-sample' };
    expect(await env.get(owned.Deployment, ref)).toMatchObject({
      metadata: { labels, annotations: { 'app.ops.my.domain/last-rollout-at': '1535546718115' } },
    });
    expect(await env.get(owned.ConfigMap, ref)).toMatchObject({
      metadata: { labels },
      data: { 'ms.properties': 'password=88888888' },
    });
    expect(await env.get(owned.HorizontalPodAutoscaler, ref)).toMatchObject({
      metadata: { labels },
      spec: { minReplicas: 1, maxReplicas: 10, scaleTargetRef: { kind: 'Deployment', name: 'ms-sample-v1s0' } },
    });
    expect(await env.get(owned.Service, ref)).toMatchObject({
      metadata: {
        labels,
        annotations: { 'app.ops.my.domain/path': 'v1', 'app.ops.my.domain/need-auth': 'true' },
      },
      spec: { selector: { app: 'ms-sample', 'custom.ops/instance': 'ms-sample-v1s0' } },
    });
    expect(await env.get(owned.Service, { namespace, name: 'ms-sample' })).toMatchObject({
      metadata: { labels },
      spec: {
        selector: { app: 'ms-sample' },
        ports: [{ name: 'http', port: 9898, protocol: 'TCP', targetPort: 9898 }],
      },
    });
    const account = await env.get(owned.ServiceAccount, { namespace, name: 'ms-sample' });
    expect(account.metadata.labels).toEqual({ ...made, 'app.kubernetes.io/managed-by': 'kindred' });
  });

  test('an edited or deleted child comes back', async () => {
    const ref = { namespace, name: 'drifting' };
    const spec = { msName: 'drift', fullName: 'drift-v1', version: '1', path: 'v1', image: 'ms:1', config: 'a=1' };
    await env.createOfKind(MicroServiceDeploy, ref, spec);
    const live = await env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow);
    const child = { namespace, name: 'drift-v1' };
    await expectDeploymentRestored(env, MicroServiceDeploy, ref, child, [...deploymentEdits('drift'), replicasEdit]);
    // The number is the port's key, so an apply alone would add ours beside it, under the same name.
    await env.patch(owned.Service, child, { spec: { ports: [{ name: 'http', port: 80, targetPort: 80 }] } });
    await env.waitUntil(owned.Service, child, 'one port, ours', ({ spec: service }) => {
      const { ports } = service as { readonly ports: readonly { readonly port: number }[] };
      return ports.length === 1 && ports[0]?.port === 9898;
    });
    // The selector is one value to the API: with a key more, the Service has no endpoints.
    await env.patch(owned.Service, child, { spec: { selector: { tier: 'none' } } });
    await env.waitUntil(owned.Service, child, 'our selector', ({ spec: service }) => {
      const { selector } = service as { readonly selector: Readonly<Record<string, string>> };
      return selector['tier'] === undefined;
    });
    await expectChildren(
      env,
      MicroServiceDeploy,
      await env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow),
    );
    await env.patch(owned.ConfigMap, child, { data: { 'ms.properties': 'a=2' } });
    await env.waitUntil(owned.ConfigMap, child, 'as written', (map) => {
      return JSON.stringify(map.data) === JSON.stringify({ 'ms.properties': 'a=1' });
    });
    await env.client.delete(owned.Service, child);
    await env.waitUntil(owned.Service, child, 'back', () => true);
    await expectChildren(env, MicroServiceDeploy, live);
  });

  test('a new fullName makes new children before the old ones go', async () => {
    const ref = { namespace, name: 'renamed' };
    const spec = {
      msName: 'renamed',
      fullName: 'renamed-v1',
      version: '1',
      path: 'v1',
      image: 'ms:1',
      autoscaling: true,
    };
    await env.createOfKind(MicroServiceDeploy, ref, spec);
    await env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow);
    await env.patchSpec(MicroServiceDeploy, ref, { fullName: 'renamed-v2', version: '2', path: 'v2' });
    const old = { namespace, name: 'renamed-v1' };
    for (const type of MicroServiceDeploy.owns) await env.waitUntilGone(type, old);
    await expectChildren(
      env,
      MicroServiceDeploy,
      await env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow),
    );
    const writes = (await env.auditLog()).writes();
    const created = writes.indexOf(`create deployments.apps ${namespace}/renamed-v2 201`);
    expect(created).toBeGreaterThan(-1);
    expect(writes.indexOf(`delete deployments.apps ${namespace}/renamed-v1 200`)).toBeGreaterThan(created);
  });

  test('deleting it deletes everything', async () => {
    const ref = { namespace, name: 'short-lived' };
    const spec = { msName: 'short', fullName: 'short', version: '1', path: 'v1', image: 'ms:1', autoscaling: true };
    await env.createOfKind(MicroServiceDeploy, ref, spec);
    await expectChildren(
      env,
      MicroServiceDeploy,
      await env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow),
    );
    await env.deleteAndWait(MicroServiceDeploy.type, ref);
    const children = [...MicroServiceDeploy.owns, owned.ServiceAccount];
    for (const type of children) await env.waitUntilGone(type, { namespace, name: 'short' });
  });

  test.each([
    ['two sources of its config', 'configSecretRef', { config: 'a=1', configSecretRef: { name: 'a', key: 'b' } }],
    [
      'requests above limits',
      'requests.cpu',
      { resourceRequirements: { requests: { cpu: '2' }, limits: { cpu: '1' } } },
    ],
    ['a version that leaves its folder', 'spec.version', { version: '1..2' }],
    ['a service name that is no label', 'spec.msName', { msName: 'Not.A.Label' }],
  ])('kubectl refuses %s', async (_, words, more) => {
    const { apiVersion, kind } = MicroServiceDeploy;
    const spec = { msName: 'bad', fullName: 'bad', version: '1', path: 'v1', image: 'ms:1', ...more };
    const object = JSON.stringify({ apiVersion, kind, metadata: { name: 'bad' }, spec });
    const { code, stderr } = await env.kubectl(['apply', '-n', namespace, '-f', '-'], object);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(words) as string });
  });

  test('the server refuses another msName', async () => {
    const ref = { namespace, name: 'steady' };
    await env.createOfKind(MicroServiceDeploy, ref, {
      msName: 'a',
      fullName: 'a',
      version: '1',
      path: 'v1',
      image: 'ms:1',
    });
    const refusal = env.patchSpec(MicroServiceDeploy, ref, { msName: 'b' });
    await expect(refusal).rejects.toMatchObject({
      code: 422,
      message: expect.stringContaining('spec.msName') as string,
    });
  });
}

/** The Deployment's spec of the sample, as the original makes it. */
const deploymentSpec = {
  replicas: 3,
  selector: { matchLabels: { app: 'ms-sample', 'custom.ops/instance': 'ms-sample-v1s0' } },
  template: {
    metadata: {
      labels: { app: 'ms-sample', 'custom.ops/instance': 'ms-sample-v1s0' },
      annotations: { 'prometheus.io/scrape': 'true', 'app.ops.my.domain/create-at': '1535546718115' },
    },
    spec: {
      serviceAccountName: 'ms-sample',
      initContainers: [
        {
          name: 'log-volume-mount-hack',
          image: 'busybox',
          imagePullPolicy: 'Always',
          command: ['sh', '-c', 'chmod -R 777 /home/admin/logs || exit 0'],
          volumeMounts: [{ name: 'log', mountPath: '/home/admin/logs' }],
        },
      ],
      containers: [
        {
          name: 'ms-sample',
          image: 'just a image url',
          imagePullPolicy: 'Always',
          ports: [{ containerPort: 9898, protocol: 'TCP' }],
          env: [
            { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'SERVICE_NAME', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
          ],
          volumeMounts: [
            { name: 'log', mountPath: '/home/admin/logs' },
            { name: 'config', mountPath: '/home/admin/conf' },
          ],
          resources: { limits: { cpu: '2', memory: '4Gi' }, requests: { cpu: '2', memory: '4Gi' } },
        },
      ],
      volumes: [
        { name: 'log', hostPath: { path: '/data0/logs/ms-sample/1.0', type: 'DirectoryOrCreate' } },
        { name: 'config', configMap: { name: 'ms-sample-v1s0', defaultMode: 420 } },
      ],
    },
  },
};
