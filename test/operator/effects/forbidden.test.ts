import { owned } from '../../../constructs/kube/resource-type';
import { ApiError } from '../../../operator/client/errors';
import { EffectInputReader } from '../../../operator/effects/effect-input-reader';
import { missingRule } from '../../../operator/effects/forbidden';
import { PlanError } from '../../../operator/effects/plan-runner';
import { MemoryApiServer } from '../../../testing/api-server/memory-api-server';
import { World } from './world';

const by = { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name: 'a', namespace: 'default', uid: 'u' } };
const denied = (request: string): ApiError => {
  const message = `x is forbidden: User "system:serviceaccount:s:op" cannot ${request}`;
  return new ApiError({ code: 403, reason: 'Forbidden', message, causes: [] }, 'GET /');
};
const nodes = denied('list resource "nodes" in API group "" at the cluster scope');
const settings = '`extraRules` of the operator (the file that "settings" of package.json names, or its Platform)';

test.each<[string, unknown, string]>([
  [
    'the whole cluster',
    nodes,
    `To permit it, add {"apiGroups":[""],"resources":["nodes"],"verbs":["list"]} to "*" in ${settings}, and install the platform again.`,
  ],
  [
    'another namespace',
    denied('patch resource "deployments/scale" in API group "apps" in the namespace "shop"'),
    `To permit it, add {"apiGroups":["apps"],"resources":["deployments/scale"],"verbs":["patch"]} to "shop" in ${settings}, and install the platform again.`,
  ],
  [
    'the namespace of the object',
    new Error('it failed', { cause: denied('get resource "pods" in API group "" in the namespace "default"') }),
    'To permit it, add {"apiGroups":[""],"resources":["pods"],"verbs":["get"]} to `extraRules` of the kind Thing, and install the platform again.',
  ],
])('names the rule and where it belongs: %s', (_, error, text) => {
  expect(missingRule(error, by)).toBe(text);
});

test.each<[string, unknown]>([
  ['a quota', new ApiError({ code: 403, reason: 'Forbidden', message: 'exceeded quota: q', causes: [] }, 'POST /')],
  ['a path', denied('get path "/metrics"')],
  ['a verb that no rule grants', denied('impersonate resource "users" in API group "" at the cluster scope')],
  ['another status', new ApiError({ code: 404, reason: 'NotFound', message: nodes.message, causes: [] }, 'GET /')],
  ['another error', new Error(nodes.message)],
])('says nothing about %s', (_, error) => {
  expect(missingRule(error, by)).toBeUndefined();
});

test('the condition of an object whose run was denied has it, and so have further words of the plan', async () => {
  const world = new World();
  await world.harness.add('a', { size: 1 });
  await world.reconcile();
  await world.end(nodes);
  await world.reconcile();
  expect(world.harness.conditions('a')).toContain('Ready=False ErrForbidden');
  expect(world.harness.message('a')).toContain(`${nodes.message}. ${String(missingRule(nodes, by))}`);
  world.harness.respec('a', { size: 2 });
  await world.reconcile();
  await world.end(new PlanError('ErrNodes', 'The nodes cannot be counted', { cause: nodes }));
  await world.reconcile();
  expect(world.harness.conditions('a')).toContain('Ready=False ErrNodes');
  expect(world.harness.message('a')).toContain(`The nodes cannot be counted. ${String(missingRule(nodes, by))}`);
});

test('what is read for an input has it: a further rule elsewhere, newer roles for what the kind declares', async () => {
  const server = new MemoryApiServer();
  const reader = new EffectInputReader(server, { namespacesFor: () => ['default', 'vault'] });
  server.before = ({ ref: { namespace } }) => {
    throw denied(`get resource "secrets" in API group "" in the namespace "${namespace ?? ''}"`);
  };
  const read = (namespace: string) =>
    reader.reader([{ name: 's', type: owned.Secret, refs: () => [{ namespace, name: 'x' }] }], by, []);
  await expect(read('vault')).rejects.toMatchObject({
    ...{ reason: 'ErrForbidden', isTerminal: false },
    message: expect.stringContaining(
      'add {"apiGroups":[""],"resources":["secrets"],"verbs":["get"]} to "vault" in',
    ) as string,
  });
  await expect(read('default')).rejects.toThrow(
    'in the namespace "default". The definition of Thing asks for this permission, so the operator\'s roles are older: install',
  );
  await expect(reader.secret({ namespace: 'default', name: 'x', key: 'k' }, by)).rejects.toThrow(
    'to `extraRules` of the kind Thing',
  );
});
