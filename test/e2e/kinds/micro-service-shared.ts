import { owned } from '../../../constructs/kube/resource-type';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { expectedShared } from '../../../testing';
import type { TestEnv } from '../../support/test-env';
import {
  findCondition,
  waitForEvent,
  expectObjects,
  hasCondition,
  isReadyNow,
  untilStanding,
} from '../../support/assertions';

/** What the instances of one msName share, on a real API server. */
export function microServiceSharedTests(env: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await env.namespace('shared');
  });
  const instance = (name: string, msName: string) =>
    env.createOfKind(
      MicroServiceDeploy,
      { namespace, name },
      { msName, fullName: `${msName}-${name}`, version: name, path: name, image: 'ms:1' },
    );
  const isReady = (name: string) => env.waitUntil(MicroServiceDeploy.type, { namespace, name }, 'Ready', isReadyNow);

  test('two instances share a Service and a ServiceAccount; the last one takes them along', async () => {
    const shared = { namespace, name: 'pair' };
    await Promise.all([instance('v1', 'pair'), instance('v2', 'pair')]);
    const both = [await isReady('v1'), await isReady('v2')];
    const expected = expectedShared(MicroServiceDeploy, both);
    await untilStanding(env, expected);
    for (const type of [owned.Service, owned.ServiceAccount]) {
      const { ownerReferences = [] } = (await env.get(type, shared)).metadata;
      expect(ownerReferences.map(({ uid }) => uid)).toEqual(both.map(({ metadata }) => metadata.uid));
      expect(ownerReferences.some(({ controller }) => controller === true)).toBe(false);
    }

    await env.deleteAndWait(MicroServiceDeploy.type, { namespace, name: 'v1' });
    const { uid } = both[1]!.metadata;
    for (const type of [owned.Service, owned.ServiceAccount]) {
      await env.waitUntil(type, shared, 'held by v2 alone', ({ metadata }) => {
        return metadata.ownerReferences?.length === 1 && metadata.ownerReferences[0]?.uid === uid;
      });
    }
    await env.waitUntilGone(owned.Deployment, { namespace, name: 'pair-v1' });
    await isReady('v2');

    await env.deleteAndWait(MicroServiceDeploy.type, { namespace, name: 'v2' });
    for (const type of [owned.Service, owned.ServiceAccount]) await env.waitUntilGone(type, shared);
  });

  test('of many that come at once, all become Ready', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `m${String(i).padStart(2, '0')}`);
    await Promise.all(names.map((name) => instance(name, 'crowd')));
    const all = [];
    for (const name of names) all.push(await isReady(name));
    await expectObjects(env, expectedShared(MicroServiceDeploy, all));
  });

  test('what is shared comes back when it is edited or deleted', async () => {
    const shared = { namespace, name: 'steady' };
    await instance('v3', 'steady');
    const expected = expectedShared(MicroServiceDeploy, [await isReady('v3')]);
    const back = () => untilStanding(env, expected);
    await env.patch(owned.Service, shared, { spec: { selector: { app: 'stranger' } } });
    await back();
    await env.client.delete(owned.ServiceAccount, shared);
    await back();
    await env.client.delete(owned.Service, shared);
    await back();
    await isReady('v3');
  });

  test("somebody else's Service of that name is refused and left alone, until it goes", async () => {
    const shared = { namespace, name: 'taken' };
    const spec = { selector: { app: 'theirs' }, ports: [{ port: 80 }] };
    await env.create(owned.Service, shared, { spec });
    await instance('v4', 'taken');
    const refused = await env.waitUntil(MicroServiceDeploy.type, { namespace, name: 'v4' }, 'refused', (object) => {
      return hasCondition(object, 'Stalled', 'True');
    });
    const words = 'Resource "taken" already exists and is not managed by MicroServiceDeploy';
    expect(findCondition(refused, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrResourceExists' });
    expect(findCondition(refused, 'Ready')?.message).toContain(words);
    expect((await waitForEvent(env, refused, 'ErrResourceExists')).note).toContain(words);
    const theirs = await env.get(owned.Service, shared);
    expect(theirs).toMatchObject({ spec });
    expect(JSON.stringify(theirs)).not.toContain('kindred');
    await env.client.delete(owned.Service, shared);
    await expectObjects(env, expectedShared(MicroServiceDeploy, [await isReady('v4')]));
  });
}
