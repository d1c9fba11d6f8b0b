import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import type { TestEnv } from '../../support/test-env';
import {
  findCondition,
  waitForChildren,
  deploymentEdits,
  expectChildren,
  expectDeploymentRestored,
  isReadyNow,
  replicasEdit,
} from '../../support/assertions';

/** HelloApp on a real API server. */
export function helloAppTests(env: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await env.namespace('hello');
  });

  test('the sample gets its Deployment and becomes Ready', async () => {
    const [sample] = HelloApp.samples;
    const ref = { namespace, name: sample!.name };
    await env.createOfKind(HelloApp, ref, sample!.spec);
    const live = await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await expectChildren(env, HelloApp, live);
    expect(live.status).toMatchObject({
      observedGeneration: 1,
      replicas: 1,
      readyReplicas: 1,
      selector: `app=${sample!.name}`,
      conditions: [{ type: 'Ready', status: 'True', reason: 'Ready' }],
    });
    const deployment = await env.get(owned.Deployment, ref);
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
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await env.patchSpec(HelloApp, ref, { image: 'nginx:2', size: 2 });
    await expectChildren(env, HelloApp, await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow));

    const { code, stderr } = await env.kubectl(['scale', 'helloapp/scaled.with-dots', '--replicas=5', '-n', namespace]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const scaled = await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    expect(scaled).toMatchObject({ spec: { size: 5 }, status: { replicas: 5, readyReplicas: 5 } });
    expect((await env.get(owned.Deployment, ref)).spec?.replicas).toBe(5);

    await env.kubectl(['scale', 'helloapp/scaled.with-dots', '--replicas=0', '-n', namespace]);
    const idle = await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    expect(idle).toMatchObject({ status: { replicas: 0, readyReplicas: 0 } });
  });

  test('a rollout that is paused is named in Ready, with the command that resumes it', async () => {
    const ref = { namespace, name: 'paused' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    const kubectl = async (...args: readonly string[]): Promise<void> =>
      expect(await env.kubectl(args)).toMatchObject({ code: 0 });
    await kubectl('rollout', 'pause', 'deployment/paused', '-n', namespace);
    await env.patchSpec(HelloApp, ref, { image: 'nginx:2' });
    const resume = `kubectl rollout resume deployment/paused --namespace=${namespace}`;
    const waiting = await env.waitUntil(HelloApp.type, ref, 'paused', (object) =>
      (findCondition(object, 'Ready')?.message ?? '').includes('with 0 of 1 replicas updated'),
    );
    expect(findCondition(waiting, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'Progressing',
      message: `Deployment "paused": its rollout is paused, with 0 of 1 replicas updated; to go on: ${resume}`,
    });
    await kubectl(...resume.split(' ').slice(1));
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
  });

  test('an edited or deleted Deployment comes back', async () => {
    const ref = { namespace, name: 'drifting' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await expectDeploymentRestored(env, HelloApp, ref, ref, [...deploymentEdits('helloapp'), replicasEdit]);
  });

  test('deleting it deletes its Deployment', async () => {
    const ref = { namespace, name: 'short-lived' };
    const object = await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await waitForChildren(env, HelloApp, object);
    await env.deleteAndWait(HelloApp.type, ref);
    await env.waitUntilGone(owned.Deployment, ref);
  });

  test('deleting it in the foreground deletes its Deployment first, and nothing comes back', async () => {
    const ref = { namespace, name: 'foreground' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    const logged = (await env.auditLog()).writes().length;
    const { code } = await env.kubectl(['delete', 'helloapp/foreground', '--cascade=foreground', '-n', namespace]);
    expect(code).toBe(0);
    expect(await env.client.get(owned.Deployment, ref)).toBeUndefined();
    const writes = (await env.auditLog()).writes().slice(logged);
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
    const { code, stderr } = await env.kubectl(['apply', '-n', namespace, '-f', '-'], JSON.stringify(object));
    expect(code).toBe(1);
    expect(stderr).toContain(field);
  });
}
