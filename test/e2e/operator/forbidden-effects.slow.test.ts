import { z } from 'zod';
import type { Effect } from '../../../constructs/kind/effects';
import { defineKind } from '../../../constructs/kind/kind';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { runPlans } from '../../../operator';
import { findCondition, isReadyNow } from '../../support/assertions';
import { TestEnvironment } from '../../../testing/public';

const NODES: ResourceType = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' };

/** Counts nodes, or reads a Secret. */
const count: Effect<{ readonly spec: { readonly what: string } }> = {
  ...{ name: 'count', phase: 'apply', plan: 'census.count', timeoutSeconds: 30, everySeconds: 3600 },
  ...{ input: ({ spec: { what } }) => ({ what }), maxAttempts: () => 3 },
};
const Census = defineKind({
  ...{ group: 'e2e.example.com', version: 'v1', kind: 'Census', plural: 'censuses', scope: 'Namespaced' },
  description: 'A number.',
  spec: z.object({ what: z.string().max(63).describe('What is counted.') }),
  owns: [],
  effects: [count],
  children: () => undefined,
});

let env: TestEnvironment;
afterEach(() => env.stop());

const start = (rules: Parameters<typeof TestEnvironment.start>[0]['operator']): Promise<TestEnvironment> =>
  TestEnvironment.start({
    kinds: [Census],
    effects: runPlans(({ client }) => ({
      'census.count': async ({ object, run, secret }) => {
        const { namespace = '' } = object.metadata;
        if (run.input['what'] === 'secret') await secret({ namespace, name: 'x', key: 'k' });
        const { items } = await client.list(NODES);
        return { message: `There are ${items.length}.` };
      },
    })),
    ...(rules && { operator: rules }),
  });

test('an effect that is denied something says which rule is missing where, and with it succeeds', async () => {
  env = await start(undefined);
  const namespace = await env.namespace();
  const message = async (name: string, what: string): Promise<string> => {
    await env.createOfKind(Census, { namespace, name }, { what });
    const denied = await env.waitUntil(
      Census.type,
      { namespace, name },
      'denied',
      (object) => findCondition(object, 'Ready')?.reason === 'ErrForbidden',
    );
    return findCondition(denied, 'Ready')?.message ?? '';
  };
  const settings = '`extraRules` of the operator (the file that "settings" of package.json names, or its Platform)';
  expect(await message('nodes', 'nodes')).toContain(
    `at the cluster scope. To permit it, add {"apiGroups":[""],"resources":["nodes"],"verbs":["list"]} to "*" in ${settings}`,
  );
  expect(await message('secret', 'secret')).toContain(
    `in the namespace "${namespace}". To permit it, add {"apiGroups":[""],"resources":["secrets"],"verbs":["get"]} to \`extraRules\` of the kind Census`,
  );
  await env.stop();

  env = await start({ extraRules: { '*': [{ apiGroups: [''], resources: ['nodes'], verbs: ['list'] }] } });
  const permitted = { namespace: await env.namespace(), name: 'nodes' };
  await env.createOfKind(Census, permitted, { what: 'nodes' });
  await env.waitUntil(Census.type, permitted, 'Ready', isReadyNow);
  expect((await env.permissions()).refused).toEqual([]);
}, 180_000);
