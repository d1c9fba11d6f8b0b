import { crdManifest } from '../../../constructs/crd';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { Foo, HelloApp } from '../../../constructs/kinds';
import type { Bench } from './support/bench';
import { condition, ready } from './support/conditions';

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

/** What the operator's health server says. The operator that it starts goes on working for the tests after it. */
export function readinessTests(bench: Bench): void {
  test('it is ready and works on the other kinds while a CRD is missing, and takes that kind up when it is installed', async () => {
    await bench.remove(CRDS, { name: Foo.crdName });
    const operator = await bench.start();
    await operator.working();
    await bench.eventually('a hint in the log', () => {
      const hints = operator.log.all.filter(({ hint }) => String(hint).startsWith('the type is not installed'));
      return Promise.resolve(hints.length > 0 ? true : undefined);
    });
    expect(await operator.readyz()).toMatchObject({ status: 200 });
    const namespace = await bench.namespace('readiness');
    const ref = { namespace, name: 'other' };
    await bench.make(HelloApp, ref, { image: 'nginx:1' });
    await bench.until(HelloApp.type, ref, 'Ready', ready);

    const { metadata, ...crd } = crdManifest(Foo);
    await bench.create(CRDS, metadata, crd);
    await bench.until(CRDS, metadata, 'established', (object) => condition(object, 'Established')?.status === 'True');
    await bench.make(Foo, { namespace, name: 'late' }, { deploymentName: 'late' });
    await bench.until(Foo.type, { namespace, name: 'late' }, 'Ready', ready);
    expect(await operator.readyz()).toMatchObject({ status: 200 });
  });

  test('its metrics bear the names that dashboards know', async () => {
    const metrics = await bench.operator.metrics();
    for (const name of [
      'controller_runtime_reconcile_total',
      'controller_runtime_reconcile_errors_total',
      'controller_runtime_active_workers',
      'workqueue_depth',
      'workqueue_adds_total',
      'rest_client_requests_total',
      'leader_election_master_status',
    ]) {
      expect({ name, served: metrics.has(name) }).toEqual({ name, served: true });
    }
    expect(metrics.sum('leader_election_master_status')).toBe(1);
  });
}
