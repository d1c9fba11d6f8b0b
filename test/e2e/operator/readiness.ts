import { crdManifest } from '../../../constructs/crd';
import type { ResourceType } from '../../../constructs/core/resource-type';
import { Foo } from '../../../constructs/kinds';
import type { Bench } from './support/bench';

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

/** What the operator's health server says. The operator that it starts goes on working for the tests after it. */
export function readinessTests(bench: Bench): void {
  test('it is not ready, and works on nothing, until every kind can be watched', async () => {
    await bench.remove(CRDS, { name: Foo.crdName });
    const operator = await bench.start();
    const waiting = await bench.eventually('the missing kind to be named', async () => {
      const answer = await operator.readyz();
      return answer.text.includes('foos') || answer.text.includes('Foo') ? answer : undefined;
    });
    expect(waiting.status).toBe(503);
    expect((await operator.healthz()).status).toBe(200);
    await bench.eventually('a hint in the log', () => {
      const hints = operator.log.all.filter(({ hint }) => hint === 'the CRD is not installed; apply crds/ first');
      return Promise.resolve(hints.length > 0 ? true : undefined);
    });
    expect(operator.log.all.map(({ msg }) => msg)).not.toContain('reconciling');

    await bench.client.create(CRDS, crdManifest(Foo), { fieldManager: 'e2e' });
    await operator.working();
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
