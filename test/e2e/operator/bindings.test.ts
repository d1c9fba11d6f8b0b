import { App, Chart } from 'cdk8s';
import { k8s } from 'cdk8s-plus-27';
import { z } from 'zod';
import { defineKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { OperatorRole } from '../../../constructs/rbac';
import { RestMapper } from '../../../operator/client/rest-mapper';
import { TestEnvironment } from '../../../testing/public';
import { kubectl } from '../../../testing/kubectl';
import { isReadyNow, findCondition } from '../../support/assertions';

const RBAC = 'rbac.authorization.k8s.io';
const BINDINGS: ResourceType = {
  ...{ apiVersion: `${RBAC}/v1`, kind: 'RoleBinding', plural: 'rolebindings', scope: 'Namespaced' },
};

/** Gives a group a ClusterRole in its namespace. The operator may bind `edit`, and has none of its permissions. */
const Team = defineKind({
  ...{ group: 'e2e.example.com', version: 'v1', kind: 'Team', plural: 'teams', scope: 'Namespaced' },
  description: 'People who may work in a namespace.',
  spec: z.object({ role: z.string().min(1).max(63).default('edit').describe('ClusterRole of the people.') }),
  owns: [BINDINGS],
  extraRules: [{ apiGroups: [RBAC], resources: ['clusterroles'], verbs: ['bind'], resourceNames: ['edit'] }],
  samples: [{ name: 'blue', spec: {} }],
  children(scope, { metadata: { name }, spec: { role } }) {
    new k8s.KubeRoleBinding(scope, 'binding', {
      metadata: { name },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: RBAC, kind: 'Group', name }],
    });
  },
});

let env: TestEnvironment;
beforeAll(async () => {
  const nodes = [{ apiGroups: [''], resources: ['nodes'], verbs: ['list'] as const }];
  env = await TestEnvironment.start({ kinds: [Team], operator: { extraRules: { '*': nodes } } });
}, 180_000);
afterAll(() => env.stop());

test('an operator binds the role that its kind names, and is refused nothing and granted nothing in vain', async () => {
  const ref = { namespace: await env.namespace('teams'), name: 'blue' };
  expect((await env.permissions()).unused).toContain(`bind clusterroles.${RBAC}`);
  await env.createOfKind(Team, ref, {});
  await env.waitUntil(Team.type, ref, 'Ready', isReadyNow);
  expect(await env.get(BINDINGS, ref)).toMatchObject({ roleRef: { kind: 'ClusterRole', name: 'edit' } });
  expect(env.platform.rules).toContainEqual({
    ...{ apiGroups: [RBAC], resources: ['clusterroles'], verbs: ['bind'] },
    resourceNames: ['edit'],
  });
  await env.deleteAndWait(Team.type, ref);
  expect(await env.permissions()).toEqual({ refused: [], unused: [] });

  const { namespace, name } = env.platform.account;
  const as = `--as=system:serviceaccount:${namespace}:${name}`;
  expect(await kubectl(env.plane, ['get', 'nodes', as])).toMatchObject({ code: 0 });
  expect(await kubectl(env.plane, ['auth', 'can-i', 'get', 'nodes', as])).toMatchObject({ stdout: 'no\n' });
  expect(
    (await env.auditLog()).unusedRules([{ apiGroups: [RBAC], resources: ['clusterroles'], verbs: ['bind'] }]),
  ).toEqual([]);
});

test('a role that the kind does not name stays out of reach, which Ready says', async () => {
  const ref = { namespace: await env.namespace('teams'), name: 'red' };
  await env.createOfKind(Team, ref, { role: 'admin' });
  const refused = await env.waitUntil(
    Team.type,
    ref,
    'refused',
    (object) => findCondition(object, 'Ready')?.reason === 'ErrForbidden',
  );
  expect(findCondition(refused, 'Ready')?.message).toContain('attempting to grant RBAC permissions not currently held');
});

test('confined to namespaces, it may bind there and nowhere else', async () => {
  const [inside, outside] = [await env.namespace('teams'), await env.namespace('teams')];
  const account = { name: 'confined', namespace: inside };
  const chart = new Chart(new App(), 'confined');
  new OperatorRole(chart, 'role', { name: 'confined', kinds: [Team], serviceAccount: account, namespaces: [inside] });
  const types = new RestMapper(env.client);
  for (const object of chart.toJson() as KubeObject[]) {
    const type = await types.find(object);
    await env.client.apply(type!, object, { fieldManager: 'e2e' });
  }
  const as = `--as=system:serviceaccount:${inside}:confined`;
  const bind = (namespace: string, role: string) =>
    kubectl(env.plane, ['create', 'rolebinding', role, `--clusterrole=${role}`, '--user=eve', '-n', namespace, as]);
  expect(await bind(inside, 'edit')).toMatchObject({ code: 0 });
  expect((await bind(inside, 'admin')).stderr).toContain('attempting to grant RBAC permissions not currently held');
  expect((await bind(outside, 'edit')).stderr).toContain('cannot create resource "rolebindings"');
});
