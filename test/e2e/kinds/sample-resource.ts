import { owned } from '../../../constructs/kube/resource-type';
import { SampleResource } from '../../../constructs/kinds';
import type { TestEnv } from '../../support/test-env';
import {
  deploymentEdits,
  expectChildren,
  expectDeploymentRestored,
  isReadyNow,
  replicasEdit,
} from '../../support/assertions';

/** SampleResource on a real API server. */
export function sampleResourceTests(env: TestEnv): void {
  test('lives from its sample to its deletion', async () => {
    const namespace = await env.namespace('sample');
    const [sample] = SampleResource.samples;
    const ref = { namespace, name: sample!.name };
    await env.createOfKind(SampleResource, ref, sample!.spec);
    await expectChildren(env, SampleResource, await env.waitUntil(SampleResource.type, ref, 'Ready', isReadyNow));
    const deployment = await env.get(owned.Deployment, ref);
    expect(deployment.spec?.replicas).toBe(1);

    await env.patchSpec(SampleResource, ref, { podImage: 'redis:7' });
    await expectChildren(env, SampleResource, await env.waitUntil(SampleResource.type, ref, 'Ready', isReadyNow));
    const { containers } = (
      deployment as unknown as { spec: { template: { spec: { containers: { name: string }[] } } } }
    ).spec.template.spec;
    await expectDeploymentRestored(env, SampleResource, ref, ref, [
      ...deploymentEdits(containers[0]!.name),
      replicasEdit,
    ]);

    await env.deleteAndWait(SampleResource.type, ref);
    await env.waitUntilGone(owned.Deployment, ref);
  });

  test('kubectl refuses one without an image', async () => {
    const object = {
      apiVersion: SampleResource.apiVersion,
      kind: SampleResource.kind,
      metadata: { name: 'bad' },
      spec: {},
    };
    const { code, stderr } = await env.kubectl(['apply', '-f', '-'], JSON.stringify(object));
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('spec.podImage') as string });
  });
}
