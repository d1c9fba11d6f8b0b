import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import type { Bench } from '../../support/test-env';
import {
  childrenStand,
  deploymentEdits,
  expectChildren,
  expectDeploymentBack,
  ready,
  replicasEdit,
} from '../../support/assertions';

/** HelloApp on a real API server. */
export function helloAppTests(bench: Bench): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await bench.namespace('hello');
  });

  test('the sample gets its Deployment and becomes Ready', async () => {
    const [sample] = HelloApp.samples;
    const ref = { namespace, name: sample!.name };
    await bench.make(HelloApp, ref, sample!.spec);
    const live = await bench.until(HelloApp.type, ref, 'Ready', ready);
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
    await bench.make(HelloApp, ref, { image: 'nginx:1' });
    await bench.until(HelloApp.type, ref, 'Ready', ready);
    await bench.respec(HelloApp, ref, { image: 'nginx:2', size: 2 });
    await expectChildren(bench, HelloApp, await bench.until(HelloApp.type, ref, 'Ready', ready));

    const { code, stderr } = await bench.kubectl([
      'scale',
      'helloapp/scaled.with-dots',
      '--replicas=5',
      '-n',
      namespace,
    ]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const scaled = await bench.until(HelloApp.type, ref, 'Ready', ready);
    expect(scaled).toMatchObject({ spec: { size: 5 }, status: { replicas: 5, readyReplicas: 5 } });
    expect((await bench.get(owned.Deployment, ref)).spec?.replicas).toBe(5);

    await bench.kubectl(['scale', 'helloapp/scaled.with-dots', '--replicas=0', '-n', namespace]);
    const idle = await bench.until(HelloApp.type, ref, 'Ready', ready);
    expect(idle).toMatchObject({ status: { replicas: 0, readyReplicas: 0 } });
  });

  test('an edited or deleted Deployment comes back', async () => {
    const ref = { namespace, name: 'drifting' };
    await bench.make(HelloApp, ref, { image: 'nginx:1' });
    await bench.until(HelloApp.type, ref, 'Ready', ready);
    await expectDeploymentBack(bench, HelloApp, ref, ref, [...deploymentEdits('helloapp'), replicasEdit]);
  });

  test('deleting it deletes its Deployment', async () => {
    const ref = { namespace, name: 'short-lived' };
    const object = await bench.make(HelloApp, ref, { image: 'nginx:1' });
    await childrenStand(bench, HelloApp, object);
    await bench.remove(HelloApp.type, ref);
    await bench.gone(owned.Deployment, ref);
  });

  test('deleting it in the foreground deletes its Deployment first, and nothing comes back', async () => {
    const ref = { namespace, name: 'foreground' };
    await bench.make(HelloApp, ref, { image: 'nginx:1' });
    await bench.until(HelloApp.type, ref, 'Ready', ready);
    const logged = (await bench.audit()).writes().length;
    const { code } = await bench.kubectl(['delete', 'helloapp/foreground', '--cascade=foreground', '-n', namespace]);
    expect(code).toBe(0);
    expect(await bench.client.get(owned.Deployment, ref)).toBeUndefined();
    const writes = (await bench.audit()).writes().slice(logged);
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
