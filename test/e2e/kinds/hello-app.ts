import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import type { TestEnv } from '../../support/test-env';
import {
  waitForChildren,
  deploymentEdits,
  expectChildren,
  expectDeploymentRestored,
  isReadyNow,
  replicasEdit,
} from '../../support/assertions';

/** HelloApp on a real API server. */
export function helloAppTests(bench: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await bench.namespace('hello');
  });

  test('the sample gets its Deployment and becomes Ready', async () => {
    const [sample] = HelloApp.samples;
    const ref = { namespace, name: sample!.name };
    await bench.createOfKind(HelloApp, ref, sample!.spec);
    const live = await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await expectChildren(bench, HelloApp, live);
    expect(live.status).toMatchObject({
      observedGeneration: 1,
      replicas: 1,
      readyReplicas: 1,
      selector: `app=${sample!.name}`,
      conditions: [{ type: 'Ready', status: 'True', reason: 'Ready' }],
    });
    const deployment = await bench.get(owned.Deployment, ref);
    expect(deployment).toMatchObject({
      metadata: { labels: { app: sample!.name, 'app.kubernetes.io/managed-by': 'kindred' } },
      spec: { replicas: 1 },
    });
    expect(deployment.metadata.ownerReferences).toMatchObject([
      { kind: 'HelloApp', controller: true, blockOwnerDeletion: true, uid: live.metadata.uid },
    ]);
    const podLabels = (deployment as unknown as { spec: { template: { metadata: object } } }).spec.template.metadata;
    expect(podLabels).toMatchObject({ labels: { app: sample!.name } });
    expect(podLabels).not.toHaveProperty(['labels', 'app.kubernetes.io/managed-by']);
  });

  test('a new image and size, and kubectl scale, reach the Deployment', async () => {
    const ref = { namespace, name: 'scaled.with-dots' };
    await bench.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await bench.patchSpec(HelloApp, ref, { image: 'nginx:2', size: 2 });
    await expectChildren(bench, HelloApp, await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow));

    const { code, stderr } = await bench.kubectl([
      'scale',
      'helloapp/scaled.with-dots',
      '--replicas=5',
      '-n',
      namespace,
    ]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const scaled = await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    expect(scaled).toMatchObject({ spec: { size: 5 }, status: { replicas: 5, readyReplicas: 5 } });
    expect((await bench.get(owned.Deployment, ref)).spec?.replicas).toBe(5);

    await bench.kubectl(['scale', 'helloapp/scaled.with-dots', '--replicas=0', '-n', namespace]);
    const idle = await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    expect(idle).toMatchObject({ status: { replicas: 0, readyReplicas: 0 } });
  });

  test('an edited or deleted Deployment comes back', async () => {
    const ref = { namespace, name: 'drifting' };
    await bench.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await expectDeploymentRestored(bench, HelloApp, ref, ref, [...deploymentEdits('helloapp'), replicasEdit]);
  });

  test('deleting it deletes its Deployment', async () => {
    const ref = { namespace, name: 'short-lived' };
    const object = await bench.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await waitForChildren(bench, HelloApp, object);
    await bench.deleteAndWait(HelloApp.type, ref);
    await bench.waitUntilGone(owned.Deployment, ref);
  });

  test('deleting it in the foreground deletes its Deployment first, and nothing comes back', async () => {
    const ref = { namespace, name: 'foreground' };
    await bench.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    const logged = (await bench.auditLog()).writes().length;
    const { code } = await bench.kubectl(['delete', 'helloapp/foreground', '--cascade=foreground', '-n', namespace]);
    expect(code).toBe(0);
    expect(await bench.client.get(owned.Deployment, ref)).toBeUndefined();
    const writes = (await bench.auditLog()).writes().slice(logged);
    expect(writes.filter((write) => write.includes('deployments.apps'))).toEqual([]);
  });

  test.each([
    ['an empty image', 'spec.image', { name: 'bad' }, { image: '' }],
    ['no image', 'spec.image', { name: 'bad' }, { size: 1 }],
    ['a negative size', 'spec.size', { name: 'bad' }, { image: 'a', size: -1 }],
    ['an unknown field', 'spec.colour', { name: 'bad' }, { image: 'a', colour: 'red' }],
    ['a name that no label can hold', 'metadata.name', { name: 'a'.repeat(64) }, { image: 'a' }],
  ])('kubectl refuses %s and names %s', async (_, field, metadata, spec) => {
    const object = { apiVersion: HelloApp.apiVersion, kind: HelloApp.kind, metadata, spec };
    const { code, stderr } = await bench.kubectl(['apply', '-n', namespace, '-f', '-'], JSON.stringify(object));
    expect(code).toBe(1);
    expect(stderr).toContain(field);
  });
}
