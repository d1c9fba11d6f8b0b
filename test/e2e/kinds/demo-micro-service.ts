import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { DemoMicroService } from '../../../constructs/kinds';
import { ApiError } from '../../../operator/client/errors';
import type { TestEnv } from '../../support/test-env';
import {
  findCondition,
  deploymentEdits,
  expectChildren,
  expectDeploymentRestored,
  isReadyNow,
} from '../../support/assertions';

const FINALIZER = 'demomicroservice.finalizers.devops.my.domain';
const HOLD = 'e2e.test/hold';
const REPLICA_SETS: ResourceType = {
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  scope: 'Namespaced',
};
const policyType = (kind: string, plural: string): ResourceType => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind,
  plural,
  scope: 'Cluster',
});
const POLICIES = policyType('ValidatingAdmissionPolicy', 'validatingadmissionpolicies');
const BINDINGS = policyType('ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings');

/** DemoMicroService on a real API server. */
export function demoMicroServiceTests(env: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await env.namespace('demo');
  });

  test('the sample gets its Deployment and finalizer, rolls with its image, and comes back', async () => {
    const [sample] = DemoMicroService.samples;
    const ref = { namespace, name: sample!.name };
    await env.createOfKind(DemoMicroService, ref, sample!.spec);
    const live = await env.waitUntil(DemoMicroService.type, ref, 'Ready', isReadyNow);
    await expectChildren(env, DemoMicroService, live);
    expect(live.metadata.finalizers).toEqual([FINALIZER]);
    const container = {
      name: sample!.name,
      imagePullPolicy: 'Always',
      ports: [{ containerPort: 9898, protocol: 'TCP' }],
    };
    const deployment = await env.get(owned.Deployment, ref);
    expect(deployment).toMatchObject({
      metadata: { labels: { app: sample!.name } },
      spec: { selector: { matchLabels: { app: sample!.name } }, template: { spec: { containers: [container] } } },
    });

    await env.patchSpec(DemoMicroService, ref, { image: 'stefanprodan/podinfo:0.0.2' });
    await expectChildren(env, DemoMicroService, await env.waitUntil(DemoMicroService.type, ref, 'Ready', isReadyNow));
    expect((await env.get(owned.Deployment, ref)).metadata.uid).toBe(deployment.metadata.uid);
    await expectDeploymentRestored(env, DemoMicroService, ref, ref, deploymentEdits(sample!.name));
  });

  test('deleting it deletes the Deployment first, and waits for that', async () => {
    const ref = { namespace, name: 'finalized' };
    await env.createOfKind(DemoMicroService, ref, { image: 'podinfo:1' });
    await env.waitUntil(DemoMicroService.type, ref, 'Ready', isReadyNow);
    const [replicaSet] = (await env.client.list(REPLICA_SETS, { namespace, labelSelector: 'app=finalized' })).items;
    const held = { namespace, name: replicaSet!.metadata.name };
    await env.patch(REPLICA_SETS, held, { metadata: { finalizers: [HOLD] } });
    await env.client.delete(DemoMicroService.type, ref);
    const deployment = await env.waitUntil(owned.Deployment, ref, 'being deleted', ({ metadata }) => {
      return metadata.deletionTimestamp !== undefined;
    });
    // The Deployment waits for its ReplicaSet, and the object for its Deployment.
    expect(deployment.metadata.finalizers).toEqual(['foregroundDeletion']);
    expect((await env.auditLog()).writes()).toContain(`delete deployments.apps ${namespace}/finalized 200`);
    await env.waitUntil(
      REPLICA_SETS,
      held,
      'being deleted',
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    );
    expect((await env.get(DemoMicroService.type, ref)).metadata.finalizers).toEqual([FINALIZER]);

    await env.patch(REPLICA_SETS, held, { metadata: { finalizers: null } });
    await env.waitUntilGone(DemoMicroService.type, ref);
    expect(await env.client.get(owned.Deployment, ref)).toBeUndefined();
  });

  test('a clean-up that is refused says why and does not run hot; once allowed, it ends', async () => {
    const ref = { namespace, name: 'guarded' };
    await env.createOfKind(DemoMicroService, ref, { image: 'podinfo:1' });
    await env.waitUntil(DemoMicroService.type, ref, 'Ready', isReadyNow);
    await forbidDeletion(env, namespace);
    await env.client.delete(DemoMicroService.type, ref);
    const stuck = await env.waitUntil(DemoMicroService.type, ref, 'saying why', (object) => {
      return findCondition(object, 'Ready')?.reason === 'ErrCleanup';
    });
    expect(findCondition(stuck, 'Ready')?.message).toContain('guarded by the test');
    expect(stuck.metadata.finalizers).toEqual([FINALIZER]);
    await env.deleteAndWait(BINDINGS, { name: 'guard' });
    await env.waitUntilGone(DemoMicroService.type, ref);
    const refused = (await env.auditLog())
      .writes()
      .filter((write) => write === `delete deployments.apps ${namespace}/guarded 422`);
    expect(refused.length).toBeLessThan(30);
  });
}

/** Nobody may delete the Deployment `guarded`; returns when that is so. */
async function forbidDeletion(env: TestEnv, namespace: string): Promise<void> {
  const rule = { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['DELETE'], resources: ['deployments'] };
  await env.create(
    POLICIES,
    { name: 'guard' },
    {
      spec: {
        matchConstraints: { resourceRules: [rule] },
        validations: [{ expression: "oldObject.metadata.name != 'guarded'", message: 'guarded by the test' }],
      },
    },
  );
  await env.create(BINDINGS, { name: 'guard' }, { spec: { policyName: 'guard', validationActions: ['Deny'] } });
  // A policy takes effect a moment after it was written.
  const decoy = { namespace: await env.namespace('decoy'), name: 'guarded' };
  await env.eventually('the policy to take effect', async () => {
    if ((await env.client.get(owned.Deployment, decoy)) === undefined) {
      const spec = (await env.get(owned.Deployment, { namespace, name: 'guarded' })).spec;
      await env.create(owned.Deployment, decoy, { spec });
    }
    return env.client.delete(owned.Deployment, decoy).then(
      () => undefined,
      (error: unknown) => (error instanceof ApiError && error.code === 422 ? true : undefined),
    );
  });
}
