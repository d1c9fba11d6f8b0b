import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { childTypes } from '../../../constructs/kind/kind';
import { HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import { ADOPT_ANNOTATION, MANAGED_BY, MANAGED_BY_LABEL } from '../../../constructs/kube/envelope';
import { findCondition, hasCondition, isReadyNow } from '../../support/assertions';
import { codeBlocks, commandsIn } from '../../support/code-blocks';
import type { TestEnv } from '../../support/test-env';

const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'operating.md'), 'utf8');

/** Objects and children that came back from a backup, on a real API server. */
export function restoreTests(env: TestEnv): void {
  const commands = commandsIn(codeBlocks(page)).filter(({ line }) => line.startsWith('kubectl annotate '));

  test('children without owner references are adopted by the command of the documentation, as they are', async () => {
    const namespace = await env.namespace('restored');
    const web = { namespace, name: 'web' };
    const shop = { namespace, name: 'shop-1' };
    const spec = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'shop:1', config: 'a=b' };
    const create = async () => {
      await env.createOfKind(HelloApp, web, { image: 'nginx:1' });
      await env.createOfKind(MicroServiceDeploy, shop, spec);
    };
    const ready = async () => [
      await env.waitUntil(HelloApp.type, web, 'Ready', isReadyNow),
      await env.waitUntil(MicroServiceDeploy.type, shop, 'Ready', isReadyNow),
    ];
    const children = async () => {
      const types = [...childTypes(HelloApp), ...childTypes(MicroServiceDeploy)];
      const labelSelector = `${MANAGED_BY_LABEL}=${MANAGED_BY}`;
      const pages = await Promise.all(types.map((type) => env.client.list(type, { namespace, labelSelector })));
      return pages.flatMap(({ items }) => items);
    };
    const identities = async () => (await children()).map(({ metadata: { name, uid } }) => ({ name, uid }));

    await create();
    await ready();
    const before = await identities();
    expect(before.length).toBeGreaterThan(5);
    // What a restore that strips owner references leaves: new objects, and children with the old UID in their annotations.
    for (const type of [HelloApp, MicroServiceDeploy]) {
      const args = ['delete', type.crdName, '--all', '--cascade=orphan', '-n', namespace];
      expect(await env.kubectl(args)).toMatchObject({ code: 0 });
    }
    await env.waitUntilGone(HelloApp.type, web);
    await env.waitUntilGone(MicroServiceDeploy.type, shop);
    await create();
    for (const [type, ref] of [
      [HelloApp.type, web],
      [MicroServiceDeploy.type, shop],
    ] as const) {
      const refused = await env.waitUntil(type, ref, 'refused', (object) => hasCondition(object, 'Stalled', 'True'));
      expect(findCondition(refused, 'Ready')).toMatchObject({ reason: 'ErrResourceExists' });
    }

    expect(commands).toHaveLength(2);
    const run = async (line = '') => {
      const inNamespace = line.replace('--all-namespaces', `--namespace=${namespace}`);
      expect(await env.kubectl(inNamespace.split(' ').slice(1))).toMatchObject({ code: 0 });
    };
    await run(commands[0]?.line);
    const owners = (await ready()).map(({ metadata }) => metadata.uid);
    await run(commands[1]?.line);
    await ready();
    expect(await identities()).toEqual(before);
    for (const { metadata } of await children()) {
      expect(owners).toContain(metadata.ownerReferences?.[0]?.uid);
      expect(metadata.annotations ?? {}).not.toHaveProperty([ADOPT_ANNOTATION]);
    }
  });
}
