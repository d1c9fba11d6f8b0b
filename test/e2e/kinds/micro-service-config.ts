import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import type { TestEnv } from '../../support/test-env';
import { waitForChildren, expectChildren, isReadyNow } from '../../support/assertions';

const PODS: ResourceType = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' };

/** The configuration of a MicroServiceDeploy, and when its pods restart, on a real API server. */
export function microServiceConfigTests(env: TestEnv): void {
  const msName = 'configured';
  let ref: { namespace: string; name: string };
  let child: { namespace: string; name: string };
  beforeAll(async () => {
    const namespace = await env.namespace('config');
    ref = { namespace, name: 'configured' };
    child = { namespace, name: 'configured-v1' };
    const spec = { msName, fullName: child.name, version: '1', path: 'v1', image: 'ms:1', creationTimestamp: '1' };
    await env.createOfKind(MicroServiceDeploy, ref, spec);
    await env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow);
  });
  const respec = async (spec: object): Promise<KubeObject> => {
    await env.patchSpec(MicroServiceDeploy, ref, spec);
    return env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow);
  };
  const pods = async (): Promise<readonly string[]> => {
    const { items } = await env.client.list(PODS, { namespace: ref.namespace, labelSelector: `app=${msName}` });
    return items
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.uid!);
  };

  test('a new config changes the ConfigMap only', async () => {
    expect(await env.get(owned.ConfigMap, child)).toMatchObject({ data: { 'ms.properties': '' } });
    const before = await env.get(owned.Deployment, child);
    const podsBefore = await pods();
    const writesBefore = (await env.auditLog()).writes().length;
    await expectChildren(env, MicroServiceDeploy, await respec({ config: 'a=1' }));
    expect(await env.get(owned.ConfigMap, child)).toMatchObject({ data: { 'ms.properties': 'a=1' } });
    const after = await env.get(owned.Deployment, child);
    expect(after.metadata.generation).toBe(before.metadata.generation);
    expect(await pods()).toEqual(podsBefore);
    const { namespace } = ref;
    const writes = (await env.auditLog()).writes().slice(writesBefore);
    expect([...new Set(writes)].sort()).toEqual([
      `patch configmaps ${namespace}/configured-v1 200`,
      `patch microservicedeploys/status.custom.ops ${namespace}/configured 200`,
    ]);
  });

  test('another creationTimestamp restarts the pods', async () => {
    const podsBefore = await pods();
    await expectChildren(env, MicroServiceDeploy, await respec({ creationTimestamp: '2' }));
    expect(await env.get(owned.Deployment, child)).toMatchObject({
      metadata: { annotations: { 'app.ops.my.domain/last-rollout-at': '2' } },
      spec: { template: { metadata: { annotations: { 'app.ops.my.domain/create-at': '2' } } } },
    });
    const podsAfter = await pods();
    expect(podsAfter).toHaveLength(1);
    expect(podsBefore).not.toContain(podsAfter[0]);
  });

  test('without a creationTimestamp its annotations go', async () => {
    const live = await respec({ creationTimestamp: null });
    await waitForChildren(env, MicroServiceDeploy, live);
    const text = JSON.stringify(await env.get(owned.Deployment, child), (key, value: unknown) =>
      key === 'managedFields' ? undefined : value,
    );
    expect(text).not.toContain('last-rollout-at');
    expect(text).not.toContain('create-at');
  });

  test('the config may come from a Secret instead', async () => {
    await expectChildren(
      env,
      MicroServiceDeploy,
      await respec({ config: null, configSecretRef: { name: 'settings', key: 'text' } }),
    );
    await env.waitUntilGone(owned.ConfigMap, child);
    const secret = { secretName: 'settings', defaultMode: 420, items: [{ key: 'text', path: 'ms.properties' }] };
    const deployment = (await env.get(owned.Deployment, child)) as unknown as {
      spec: { template: { spec: { volumes: readonly unknown[] } } };
    };
    expect(deployment.spec.template.spec.volumes).toEqual([
      expect.objectContaining({ name: 'log' }) as unknown,
      { name: 'config', secret },
    ]);
  });
}
