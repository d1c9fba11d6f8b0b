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
export function demoMicroServiceTests(bench: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await bench.namespace('demo');
  });

  test('the sample gets its Deployment and finalizer, rolls with its image, and comes back', async () => {
    const [sample] = DemoMicroService.samples;
    const ref = { namespace, name: sample!.name };
    await bench.createOfKind(DemoMicroService, ref, sample!.spec);
    const live = await bench.waitUntil(DemoMicroService.type, ref, 'Ready', isReadyNow);
    await expectChildren(bench, DemoMicroService, live);
    expect(live.metadata.finalizers).toEqual([FINALIZER]);
    const container = {
      name: sample!.name,
      imagePullPolicy: 'Always',
      ports: [{ containerPort: 9898, protocol: 'TCP' }],
    };
    const deployment = await bench.get(owned.Deployment, ref);
    expect(deployment).toMatchObject({
      metadata: { labels: { app: sample!.name } },
      spec: { selector: { matchLabels: { app: sample!.name } }, template: { spec: { containers: [container] } } },
    });

    await bench.patchSpec(DemoMicroService, ref, { image: 'stefanprodan/podinfo:0.0.2' });
    await expectChildren(
      bench,
      DemoMicroService,
      await bench.waitUntil(DemoMicroService.type, ref, 'Ready', isReadyNow),
    );
    expect((await bench.get(owned.Deployment, ref)).metadata.uid).toBe(deployment.metadata.uid);
    await expectDeploymentRestored(bench, DemoMicroService, ref, ref, deploymentEdits(sample!.name));
  });

  test('deleting it deletes the Deployment first, and waits for that', async () => {
    const ref = { namespace, name: 'finalized' };
    await bench.createOfKind(DemoMicroService, ref, { image: 'podinfo:1' });
    await bench.waitUntil(DemoMicroService.type, ref, 'Ready', isReadyNow);
    const [replicaSet] = (await bench.client.list(REPLICA_SETS, { namespace, labelSelector: 'app=finalized' })).items;
    const held = { namespace, name: replicaSet!.metadata.name };
    await bench.patch(REPLICA_SETS, held, { metadata: { finalizers: [HOLD] } });
    await bench.client.delete(DemoMicroService.type, ref);
    const deployment = await bench.waitUntil(owned.Deployment, ref, 'being deleted', ({ metadata }) => {
      return metadata.deletionTimestamp !== undefined;
    });
    // The Deployment waits for its ReplicaSet, and the object for its Deployment.
    expect(deployment.metadata.finalizers).toEqual(['foregroundDeletion']);
    expect((await bench.auditLog()).writes()).toContain(`delete deployments.apps ${namespace}/finalized 200`);
    await bench.waitUntil(
      REPLICA_SETS,
      held,
      'being deleted',
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    );
    expect((await bench.get(DemoMicroService.type, ref)).metadata.finalizers).toEqual([FINALIZER]);

    await bench.patch(REPLICA_SETS, held, { metadata: { finalizers: null } });
    await bench.waitUntilGone(DemoMicroService.type, ref);
    expect(await bench.client.get(owned.Deployment, ref)).toBeUndefined();
  });

  test('a clean-up that is refused says why and does not run hot; once allowed, it ends', async () => {
    const ref = { namespace, name: 'guarded' };
    await bench.createOfKind(DemoMicroService, ref, { image: 'podinfo:1' });
    await bench.waitUntil(DemoMicroService.type, ref, 'Ready', isReadyNow);
    await forbidDeletion(bench, namespace);
    await bench.client.delete(DemoMicroService.type, ref);
    const stuck = await bench.waitUntil(DemoMicroService.type, ref, 'saying why', (object) => {
      return findCondition(object, 'Ready')?.reason === 'ErrCleanup';
    });
    expect(findCondition(stuck, 'Ready')?.message).toContain('guarded by the test');
    expect(stuck.metadata.finalizers).toEqual([FINALIZER]);
    await bench.deleteAndWait(BINDINGS, { name: 'guard' });
    await bench.waitUntilGone(DemoMicroService.type, ref);
    const refused = (await bench.auditLog())
      .writes()
      .filter((write) => write === `delete deployments.apps ${namespace}/guarded 422`);
    expect(refused.length).toBeLessThan(30);
  });
}

/** Nobody may delete the Deployment `guarded`; returns when that is so. */
async function forbidDeletion(bench: TestEnv, namespace: string): Promise<void> {
  const rule = { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['DELETE'], resources: ['deployments'] };
  await bench.create(
    POLICIES,
    { name: 'guard' },
    {
      spec: {
        matchConstraints: { resourceRules: [rule] },
        validations: [{ expression: "oldObject.metadata.name != 'guarded'", message: 'guarded by the test' }],
      },
    },
  );
  await bench.create(BINDINGS, { name: 'guard' }, { spec: { policyName: 'guard', validationActions: ['Deny'] } });
  // A policy takes effect a moment after it was written.
  const decoy = { namespace: await bench.namespace('decoy'), name: 'guarded' };
  await bench.eventually('the policy to take effect', async () => {
    if ((await bench.client.get(owned.Deployment, decoy)) === undefined) {
      const spec = (await bench.get(owned.Deployment, { namespace, name: 'guarded' })).spec;
      await bench.create(owned.Deployment, decoy, { spec });
    }
    return bench.client.delete(owned.Deployment, decoy).then(
      () => undefined,
      (error: unknown) => (error instanceof ApiError && error.code === 422 ? true : undefined),
    );
  });
}
