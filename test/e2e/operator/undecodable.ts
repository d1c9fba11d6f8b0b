import { crdManifest } from '../../../constructs/crd';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import type { Bench } from './support/bench';
import { condition, is, ready } from './support/conditions';

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

/** Objects that an older or looser CRD has let in. */
export function undecodableTests(bench: Bench): void {
  test('an object that does not fit the schema says so, and the others go on', async () => {
    const namespace = await bench.namespace('loose');
    const { spec } = crdManifest(HelloApp);
    await bench.patch(CRDS, { name: HelloApp.crdName }, { spec: loosened(spec) as object });
    const bad = { namespace, name: 'bad' };
    await bench.eventually('the looser schema to be in force', () =>
      bench.make(HelloApp, bad, { image: '' }).catch(() => undefined),
    );
    const stalled = await bench.until(HelloApp.type, bad, 'Stalled', (object) => is(object, 'Stalled', 'True'));
    expect(condition(stalled, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrInvalidSpec' });
    expect(condition(stalled, 'Ready')?.message).toContain('spec.image');

    const good = { namespace, name: 'good' };
    await bench.make(HelloApp, good, { image: 'nginx:1' });
    await bench.until(HelloApp.type, good, 'Ready', ready);
    await bench.respec(HelloApp, bad, { image: 'nginx:1' });
    await bench.until(HelloApp.type, bad, 'Ready', ready);
    await bench.patch(CRDS, { name: HelloApp.crdName }, { spec: spec as object });
  });
}

/** The same without lower bounds of strings. */
function loosened(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === 'minLength' ? undefined : value)));
}
