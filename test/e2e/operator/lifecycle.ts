import { crdManifest } from '../../../constructs/crd';
import { CronTab, DemoMicroService, Foo, HelloApp } from '../../../constructs/kinds';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import type { GrantedRule, OperatorProcess } from '../../../testing';
import {
  waitForChildren,
  findCondition,
  expectChildren,
  hasCondition,
  waitUntilIdle,
  isReadyNow,
} from '../../support/assertions';
import { operatorKinds, type TestEnv } from '../../support/test-env';

/** An operator that comes back to a cluster in which nothing has changed. */
export function restartTests(bench: TestEnv): void {
  test('a restarted operator writes nothing', async () => {
    const namespace = await bench.namespace('restart');
    const samples = operatorKinds.flatMap((kind) => kind.samples.map((sample) => ({ kind, ...sample })));
    await Promise.all(samples.map(({ kind, name, spec }) => bench.createOfKind(kind, { namespace, name }, spec)));
    for (const { kind, name } of samples) await bench.waitUntil(kind.type, { namespace, name }, 'Ready', isReadyNow);
    await waitUntilIdle(bench, bench.operator);
    expect(await bench.operator.stop()).toEqual({ code: 0, signal: null });
    expect(bench.operator.log.errors()).toEqual([]);

    const before = (await bench.auditLog()).writes().length;
    const operator = await bench.start();
    await operator.waitUntilReconciling();
    // Every object and the shared key of one have been looked at.
    await waitUntilIdle(bench, operator, samples.length + 1);
    expect((await bench.auditLog()).writes().slice(before)).toEqual([]);
    expect(operator.log.errors()).toEqual([]);
  });
}

/** What happens while no operator runs is made good by the next one. An operator must be at work already. */
export function awayTests(bench: TestEnv): void {
  test('edits, deletions, renames and dropped fields while it is away are made good', async () => {
    const namespace = await bench.namespace('away');
    const at = (name: string) => ({ namespace, name });
    await Promise.all([
      bench.createOfKind(HelloApp, at('edited'), { image: 'nginx:1' }),
      bench.createOfKind(HelloApp, at('bereft'), { image: 'nginx:1' }),
      bench.createOfKind(HelloApp, at('deleted'), { image: 'nginx:1' }),
      bench.createOfKind(Foo, at('renamed'), { deploymentName: 'old-name' }),
      bench.createOfKind(CronTab, at('trimmed'), { cronSpec: '@daily', image: 'busybox:1', timeZone: 'Asia/Tokyo' }),
      bench.createOfKind(DemoMicroService, at('finalized'), { image: 'podinfo:1' }),
    ]);
    for (const name of ['edited', 'bereft', 'deleted'])
      await bench.waitUntil(HelloApp.type, at(name), 'Ready', isReadyNow);
    await bench.waitUntil(Foo.type, at('renamed'), 'Ready', isReadyNow);
    await bench.waitUntil(CronTab.type, at('trimmed'), 'Ready', isReadyNow);
    await bench.waitUntil(DemoMicroService.type, at('finalized'), 'Ready', isReadyNow);

    await bench.operator.stop();
    await bench.patch(owned.Deployment, at('edited'), { spec: { replicas: 3 } });
    await bench.deleteAndWait(owned.Deployment, at('bereft'));
    await bench.client.delete(HelloApp.type, at('deleted'));
    await bench.patchSpec(Foo, at('renamed'), { deploymentName: 'new-name' });
    await bench.patchSpec(CronTab, at('trimmed'), { timeZone: null });
    await bench.client.delete(DemoMicroService.type, at('finalized'));
    await bench.start();
    await bench.operator.waitUntilReconciling();

    await waitForChildren(bench, HelloApp, await bench.get(HelloApp.type, at('edited')));
    await waitForChildren(bench, HelloApp, await bench.get(HelloApp.type, at('bereft')));
    await waitForChildren(bench, Foo, await bench.get(Foo.type, at('renamed')));
    await waitForChildren(bench, CronTab, await bench.get(CronTab.type, at('trimmed')));
    const { spec } = (await bench.get(owned.CronJob, at('trimmed'))) as { spec?: { timeZone?: string } };
    expect(spec?.timeZone).toBeUndefined();
    for (const name of ['old-name', 'deleted', 'finalized']) await bench.waitUntilGone(owned.Deployment, at(name));
    await bench.waitUntilGone(DemoMicroService.type, at('finalized'));
    await bench.waitUntil(HelloApp.type, at('edited'), 'Ready', isReadyNow);
  });
}

const LEASES: ResourceType = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
};

const many = 50;

/** A replica that takes over. An operator must be at work already. */
export function takeoverTests(bench: TestEnv): void {
  const leads = async (operator: OperatorProcess): Promise<boolean> =>
    (await operator.metrics()).sum('leader_election_master_status') === 1;

  test('a second replica waits, ready, and takes over when the first one stops', async () => {
    const namespace = await bench.namespace('lead');
    const first = bench.operator;
    const second = await bench.start();
    await second.log.line('every cache is synced');
    expect((await second.readyz()).status).toBe(200);
    expect([await leads(first), await leads(second)]).toEqual([true, false]);

    const ref = { namespace, name: 'before' };
    await bench.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    expect(second.log.all.map(({ msg }) => msg)).not.toContain('reconciling');

    expect(await first.stop()).toEqual({ code: 0, signal: null });
    await bench.createOfKind(HelloApp, { namespace, name: 'between' }, { image: 'nginx:1' });
    await second.waitUntilReconciling();
    await bench.waitUntil(HelloApp.type, { namespace, name: 'between' }, 'Ready', isReadyNow);
    expect(await leads(second)).toBe(true);
    const { name } = bench.platform.account;
    const lease = await bench.get(LEASES, { namespace: bench.platform.account.namespace, name });
    expect(lease.spec).toMatchObject({ leaseTransitions: expect.any(Number) as number });
  });
}

/** Several replicas of the operator, of which one works. An operator must be at work already. */
export function leadershipTests(bench: TestEnv): void {
  takeoverTests(bench);

  test(`killed in the middle of ${String(many)} creates, the next one brings all of them to Ready`, async () => {
    const namespace = await bench.namespace('killed');
    const names = Array.from({ length: many }, (_, i) => `app-${String(i)}`);
    const create = (name: string) => bench.createOfKind(HelloApp, { namespace, name }, { image: 'nginx:1' });
    await Promise.all(names.slice(0, many / 2).map(create));
    await bench.whenChanged('the first Deployments', [{ type: owned.Deployment, namespace }], async () => {
      const { items } = await bench.client.list(owned.Deployment, { namespace, limit: 5 });
      return items.length > 0 ? true : undefined;
    });
    const killed = bench.operator.kill();
    await Promise.all(names.slice(many / 2).map(create));
    expect(await killed).toMatchObject({ signal: 'SIGKILL' });

    const next = await bench.start();
    await next.waitUntilReconciling();
    for (const name of names) {
      const live = await bench.waitUntil(HelloApp.type, { namespace, name }, 'Ready', isReadyNow);
      await expectChildren(bench, HelloApp, live);
    }
    const { items } = await bench.client.list(owned.Deployment, { namespace });
    expect(items).toHaveLength(many);
    expect(next.log.errors()).toEqual([]);
  });

  test('one that loses its Lease to somebody else ends, for the kubelet to start it afresh', async () => {
    const { namespace, name } = bench.platform.account;
    await bench.patch(LEASES, { namespace, name }, { spec: { holderIdentity: 'somebody-else' } });
    expect(await bench.operator.exited).toEqual({ code: 1, signal: null });
    // Nobody waits for somebody who never was.
    await bench.deleteAndWait(LEASES, { namespace, name });
    await bench.start();
    await bench.operator.waitUntilReconciling();
  });
}

const CLUSTER_ROLES: ResourceType = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  scope: 'Cluster',
};

/** A permission that no request of its own needs, and what its lack looks like. */
export function permissionTests(bench: TestEnv): void {
  const resource = `${HelloApp.plural}/finalizers`;

  test(`without ${resource} nothing can be owned, which Ready says; with it, all goes on`, async () => {
    const namespace = await bench.namespace('permissions');
    const role = { name: bench.platform.account.name };
    const rules = (await bench.get(CLUSTER_ROLES, role)).rules as readonly GrantedRule[];
    const without = rules.map((rule) => ({ ...rule, resources: rule.resources?.filter((name) => name !== resource) }));
    await bench.patch(CLUSTER_ROLES, role, { rules: without.filter((rule) => rule.resources?.length !== 0) });
    await bench.eventually('the permission to be gone', async () => ((await mayOwn(bench)) ? undefined : true));

    const ref = { namespace, name: 'powerless' };
    await bench.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    const refused = await bench.waitUntil(HelloApp.type, ref, 'forbidden', (object) =>
      hasCondition(object, 'Ready', 'False'),
    );
    expect(findCondition(refused, 'Ready')).toMatchObject({ reason: 'ErrForbidden' });
    expect(findCondition(refused, 'Ready')?.message).toContain('cannot set blockOwnerDeletion');

    await bench.patch(CLUSTER_ROLES, role, { rules });
    await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
  });

  async function mayOwn(on: TestEnv): Promise<boolean> {
    const { namespace, name } = on.platform.account;
    const as = `--as=system:serviceaccount:${namespace}:${name}`;
    const what = `${HelloApp.plural}.${HelloApp.group}`;
    return (await on.kubectl(['auth', 'can-i', 'update', what, '--subresource=finalizers', as, '-A'])).code === 0;
  }
}

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

/** What the operator's health server says. The operator that it starts goes on working for the tests after it. */
export function readinessTests(bench: TestEnv): void {
  test('it is ready and works on the other kinds while a CRD is missing, and takes that kind up when it is installed', async () => {
    await bench.deleteAndWait(CRDS, { name: Foo.crdName });
    const operator = await bench.start();
    await operator.waitUntilReconciling();
    await bench.eventually('a hint in the log', () => {
      const hints = operator.log.all.filter(({ hint }) => String(hint).startsWith('the type is not installed'));
      return Promise.resolve(hints.length > 0 ? true : undefined);
    });
    expect(await operator.readyz()).toMatchObject({ status: 200 });
    const namespace = await bench.namespace('readiness');
    const ref = { namespace, name: 'other' };
    await bench.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);

    const { metadata, ...crd } = crdManifest(Foo);
    await bench.create(CRDS, metadata, crd);
    await bench.waitUntil(
      CRDS,
      metadata,
      'established',
      (object) => findCondition(object, 'Established')?.status === 'True',
    );
    await bench.createOfKind(Foo, { namespace, name: 'late' }, { deploymentName: 'late' });
    await bench.waitUntil(Foo.type, { namespace, name: 'late' }, 'Ready', isReadyNow);
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
