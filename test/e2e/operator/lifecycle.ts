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
export function restartTests(env: TestEnv): void {
  test('a restarted operator writes nothing', async () => {
    const namespace = await env.namespace('restart');
    const samples = operatorKinds.flatMap((kind) => kind.samples.map((sample) => ({ kind, ...sample })));
    await Promise.all(samples.map(({ kind, name, spec }) => env.createOfKind(kind, { namespace, name }, spec)));
    for (const { kind, name } of samples) await env.waitUntil(kind.type, { namespace, name }, 'Ready', isReadyNow);
    await waitUntilIdle(env, env.operator);
    expect(await env.operator.stop()).toEqual({ code: 0, signal: null });
    expect(env.operator.log.errors()).toEqual([]);

    const before = (await env.auditLog()).writes().length;
    const operator = await env.start();
    await operator.waitUntilReconciling();
    // Every object and the shared key of one have been looked at.
    await waitUntilIdle(env, operator, samples.length + 1);
    expect((await env.auditLog()).writes().slice(before)).toEqual([]);
    expect(operator.log.errors()).toEqual([]);
  });
}

/** What happens while no operator runs is made good by the next one. An operator must be at work already. */
export function awayTests(env: TestEnv): void {
  test('edits, deletions, renames and dropped fields while it is away are made good', async () => {
    const namespace = await env.namespace('away');
    const at = (name: string) => ({ namespace, name });
    await Promise.all([
      env.createOfKind(HelloApp, at('edited'), { image: 'nginx:1' }),
      env.createOfKind(HelloApp, at('bereft'), { image: 'nginx:1' }),
      env.createOfKind(HelloApp, at('deleted'), { image: 'nginx:1' }),
      env.createOfKind(Foo, at('renamed'), { deploymentName: 'old-name' }),
      env.createOfKind(CronTab, at('trimmed'), { cronSpec: '@daily', image: 'busybox:1', timeZone: 'Asia/Tokyo' }),
      env.createOfKind(DemoMicroService, at('finalized'), { image: 'podinfo:1' }),
    ]);
    for (const name of ['edited', 'bereft', 'deleted'])
      await env.waitUntil(HelloApp.type, at(name), 'Ready', isReadyNow);
    await env.waitUntil(Foo.type, at('renamed'), 'Ready', isReadyNow);
    await env.waitUntil(CronTab.type, at('trimmed'), 'Ready', isReadyNow);
    await env.waitUntil(DemoMicroService.type, at('finalized'), 'Ready', isReadyNow);

    await env.operator.stop();
    await env.patch(owned.Deployment, at('edited'), { spec: { replicas: 3 } });
    await env.deleteAndWait(owned.Deployment, at('bereft'));
    await env.client.delete(HelloApp.type, at('deleted'));
    await env.patchSpec(Foo, at('renamed'), { deploymentName: 'new-name' });
    await env.patchSpec(CronTab, at('trimmed'), { timeZone: null });
    await env.client.delete(DemoMicroService.type, at('finalized'));
    await env.start();
    await env.operator.waitUntilReconciling();

    await waitForChildren(env, HelloApp, await env.get(HelloApp.type, at('edited')));
    await waitForChildren(env, HelloApp, await env.get(HelloApp.type, at('bereft')));
    await waitForChildren(env, Foo, await env.get(Foo.type, at('renamed')));
    await waitForChildren(env, CronTab, await env.get(CronTab.type, at('trimmed')));
    const { spec } = (await env.get(owned.CronJob, at('trimmed'))) as { spec?: { timeZone?: string } };
    expect(spec?.timeZone).toBeUndefined();
    for (const name of ['old-name', 'deleted', 'finalized']) await env.waitUntilGone(owned.Deployment, at(name));
    await env.waitUntilGone(DemoMicroService.type, at('finalized'));
    await env.waitUntil(HelloApp.type, at('edited'), 'Ready', isReadyNow);
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
export function takeoverTests(env: TestEnv): void {
  const leads = async (operator: OperatorProcess): Promise<boolean> =>
    (await operator.metrics()).sum('leader_election_master_status') === 1;

  test('a second replica waits, ready, and takes over when the first one stops', async () => {
    const namespace = await env.namespace('lead');
    const first = env.operator;
    const second = await env.start();
    await second.log.line('every cache is synced');
    expect((await second.readyz()).status).toBe(200);
    expect([await leads(first), await leads(second)]).toEqual([true, false]);

    const ref = { namespace, name: 'before' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    expect(second.log.all.map(({ msg }) => msg)).not.toContain('reconciling');

    expect(await first.stop()).toEqual({ code: 0, signal: null });
    await env.createOfKind(HelloApp, { namespace, name: 'between' }, { image: 'nginx:1' });
    await second.waitUntilReconciling();
    await env.waitUntil(HelloApp.type, { namespace, name: 'between' }, 'Ready', isReadyNow);
    expect(await leads(second)).toBe(true);
    const { name } = env.platform.account;
    const lease = await env.get(LEASES, { namespace: env.platform.account.namespace, name });
    expect(lease.spec).toMatchObject({ leaseTransitions: expect.any(Number) as number });
  });
}

/** Several replicas of the operator, of which one works. An operator must be at work already. */
export function leadershipTests(env: TestEnv): void {
  takeoverTests(env);

  test(`killed in the middle of ${String(many)} creates, the next one brings all of them to Ready`, async () => {
    const namespace = await env.namespace('killed');
    const names = Array.from({ length: many }, (_, i) => `app-${String(i)}`);
    const create = (name: string) => env.createOfKind(HelloApp, { namespace, name }, { image: 'nginx:1' });
    await Promise.all(names.slice(0, many / 2).map(create));
    await env.whenChanged('the first Deployments', [{ type: owned.Deployment, namespace }], async () => {
      const { items } = await env.client.list(owned.Deployment, { namespace, limit: 5 });
      return items.length > 0 ? true : undefined;
    });
    const killed = env.operator.kill();
    await Promise.all(names.slice(many / 2).map(create));
    expect(await killed).toMatchObject({ signal: 'SIGKILL' });

    const next = await env.start();
    await next.waitUntilReconciling();
    for (const name of names) {
      const live = await env.waitUntil(HelloApp.type, { namespace, name }, 'Ready', isReadyNow);
      await expectChildren(env, HelloApp, live);
    }
    const { items } = await env.client.list(owned.Deployment, { namespace });
    expect(items).toHaveLength(many);
    expect(next.log.errors()).toEqual([]);
  });

  test('one that loses its Lease to somebody else ends, for the kubelet to start it afresh', async () => {
    const { namespace, name } = env.platform.account;
    await env.patch(LEASES, { namespace, name }, { spec: { holderIdentity: 'somebody-else' } });
    expect(await env.operator.exited).toEqual({ code: 1, signal: null });
    // Nobody waits for somebody who never was.
    await env.deleteAndWait(LEASES, { namespace, name });
    await env.start();
    await env.operator.waitUntilReconciling();
  });
}

const CLUSTER_ROLES: ResourceType = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  scope: 'Cluster',
};

/** A permission that no request of its own needs, and what its lack looks like. */
export function permissionTests(env: TestEnv): void {
  const resource = `${HelloApp.plural}/finalizers`;

  test(`without ${resource} nothing can be owned, which Ready says; with it, all goes on`, async () => {
    const namespace = await env.namespace('permissions');
    const role = { name: env.platform.account.name };
    const rules = (await env.get(CLUSTER_ROLES, role)).rules as readonly GrantedRule[];
    const without = rules.map((rule) => ({ ...rule, resources: rule.resources?.filter((name) => name !== resource) }));
    await env.patch(CLUSTER_ROLES, role, { rules: without.filter((rule) => rule.resources?.length !== 0) });
    await env.eventually('the permission to be gone', async () => ((await mayOwn(env)) ? undefined : true));

    const ref = { namespace, name: 'powerless' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    const refused = await env.waitUntil(HelloApp.type, ref, 'forbidden', (object) =>
      hasCondition(object, 'Ready', 'False'),
    );
    expect(findCondition(refused, 'Ready')).toMatchObject({ reason: 'ErrForbidden' });
    expect(findCondition(refused, 'Ready')?.message).toContain('cannot set blockOwnerDeletion');

    await env.patch(CLUSTER_ROLES, role, { rules });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
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
export function readinessTests(env: TestEnv): void {
  test('it is ready and works on the other kinds while a CRD is missing, and takes that kind up when it is installed', async () => {
    await env.deleteAndWait(CRDS, { name: Foo.crdName });
    const operator = await env.start();
    await operator.waitUntilReconciling();
    await env.eventually('a hint in the log', () => {
      const hints = operator.log.all.filter(({ hint }) => String(hint).startsWith('the type is not installed'));
      return Promise.resolve(hints.length > 0 ? true : undefined);
    });
    expect(await operator.readyz()).toMatchObject({ status: 200 });
    const namespace = await env.namespace('readiness');
    const ref = { namespace, name: 'other' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);

    const { metadata, ...crd } = crdManifest(Foo);
    await env.create(CRDS, metadata, crd);
    await env.waitUntil(
      CRDS,
      metadata,
      'established',
      (object) => findCondition(object, 'Established')?.status === 'True',
    );
    await env.createOfKind(Foo, { namespace, name: 'late' }, { deploymentName: 'late' });
    await env.waitUntil(Foo.type, { namespace, name: 'late' }, 'Ready', isReadyNow);
    expect(await operator.readyz()).toMatchObject({ status: 200 });
  });

  test('its metrics bear the names that dashboards know', async () => {
    const metrics = await env.operator.metrics();
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
