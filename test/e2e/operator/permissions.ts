import type { ResourceType } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import type { GrantedRule } from '../../../testing';
import type { Bench } from './support/bench';
import { condition, is, ready } from './support/conditions';

const CLUSTER_ROLES: ResourceType = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  scope: 'Cluster',
};

/** A permission that no request of its own needs, and what its lack looks like. */
export function permissionTests(bench: Bench): void {
  const resource = `${HelloApp.plural}/finalizers`;

  test(`without ${resource} nothing can be owned, which Ready says; with it, all goes on`, async () => {
    const namespace = await bench.namespace('permissions');
    const role = { name: bench.platform.account.name };
    const rules = (await bench.get(CLUSTER_ROLES, role)).rules as readonly GrantedRule[];
    const without = rules.map((rule) => ({ ...rule, resources: rule.resources?.filter((name) => name !== resource) }));
    await bench.patch(CLUSTER_ROLES, role, { rules: without.filter((rule) => rule.resources?.length !== 0) });
    await bench.eventually('the permission to be gone', async () => ((await mayOwn(bench)) ? undefined : true));

    const ref = { namespace, name: 'powerless' };
    await bench.make(HelloApp, ref, { image: 'nginx:1' });
    const refused = await bench.until(HelloApp.type, ref, 'forbidden', (object) => is(object, 'Ready', 'False'));
    expect(condition(refused, 'Ready')).toMatchObject({ reason: 'ErrForbidden' });
    expect(condition(refused, 'Ready')?.message).toContain('cannot set blockOwnerDeletion');

    await bench.patch(CLUSTER_ROLES, role, { rules });
    await bench.until(HelloApp.type, ref, 'Ready', ready);
  });

  async function mayOwn(on: Bench): Promise<boolean> {
    const { namespace, name } = on.platform.account;
    const as = `--as=system:serviceaccount:${namespace}:${name}`;
    const what = `${HelloApp.plural}.${HelloApp.group}`;
    return (await on.kubectl(['auth', 'can-i', 'update', what, '--subresource=finalizers', as, '-A'])).code === 0;
  }
}
