import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp, SampleResource } from '../../../constructs/kinds';
import type { Bench } from './support/bench';
import { condition, is, ready } from './support/conditions';
import { childrenStand, expectChildren } from './support/expect-children';

/** Several who want one thing, on a real API server. */
export function contestTests(bench: Bench): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await bench.namespace('contest');
  });

  test('a writer that insists is named, and neither side runs hot; once it stops, the operator wins', async () => {
    const ref = { namespace, name: 'contested' };
    await bench.make(HelloApp, ref, { image: 'nginx:1' });
    await bench.until(HelloApp.type, ref, 'Ready', ready);
    const contested = await bench.eventually('the contest to be noticed', async () => {
      await bench.patch(owned.Deployment, ref, { spec: { replicas: 7 } });
      const object = await bench.get(HelloApp.type, ref);
      return condition(object, 'Ready')?.reason === 'ErrContested' ? object : undefined;
    });
    expect(condition(contested, 'Ready')?.message).toContain('spec.replicas is changed by "e2e"');
    await childrenStand(bench, HelloApp, await bench.until(HelloApp.type, ref, 'Ready', ready));
  });

  test('of two kinds that want one name the second is refused, until the first one goes', async () => {
    const ref = { namespace, name: 'both' };
    await bench.make(HelloApp, ref, { image: 'nginx:1' });
    await bench.until(HelloApp.type, ref, 'Ready', ready);
    await bench.make(SampleResource, ref, { podImage: 'nginx:2' });
    const refused = await bench.until(SampleResource.type, ref, 'refused', (object) => is(object, 'Stalled', 'True'));
    expect(condition(refused, 'Ready')?.message).toContain('already exists and is not managed by SampleResource');
    await bench.until(HelloApp.type, ref, 'Ready as before', ready);
    await bench.remove(HelloApp.type, ref);
    await expectChildren(bench, SampleResource, await bench.until(SampleResource.type, ref, 'Ready', ready));
  });
}
