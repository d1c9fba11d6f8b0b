import { owned } from '../../../constructs/kube/resource-type';
import { Foo } from '../../../constructs/kinds';
import type { TestEnv } from '../../support/test-env';
import {
  findCondition,
  deploymentEdits,
  waitForEvent,
  expectChildren,
  expectDeploymentRestored,
  hasCondition,
  isReadyNow,
  replicasEdit,
} from '../../support/assertions';

/** A Deployment of somebody's own. */
const foreignSpec = {
  replicas: 1,
  selector: { matchLabels: { app: 'theirs' } },
  template: { metadata: { labels: { app: 'theirs' } }, spec: { containers: [{ name: 'theirs', image: 'theirs:1' }] } },
};

/** Foo on a real API server. */
export function fooTests(env: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await env.namespace('foo');
  });

  test('the sample gets its Deployment, becomes Ready and is said to be synced', async () => {
    const [sample] = Foo.samples;
    const ref = { namespace, name: sample!.name };
    await env.createOfKind(Foo, ref, sample!.spec);
    const live = await env.waitUntil(Foo.type, ref, 'Ready', isReadyNow);
    await expectChildren(env, Foo, live);
    expect(live.status).toMatchObject({ availableReplicas: 1 });
    expect(await env.get(owned.Deployment, ref)).toMatchObject({
      metadata: { labels: { app: 'nginx', controller: sample!.name } },
      spec: { template: { spec: { containers: [{ name: 'nginx', image: 'nginx:latest' }] } } },
    });
    const event = await waitForEvent(env, live, 'Synced');
    expect(event).toMatchObject({ type: 'Normal', note: 'Foo synced successfully' });
  });

  test('an edited or deleted Deployment comes back; deleting the Foo removes it', async () => {
    const ref = { namespace, name: 'drifting' };
    const child = { namespace, name: 'drifting-deployment' };
    await env.createOfKind(Foo, ref, { deploymentName: child.name });
    await env.waitUntil(Foo.type, ref, 'Ready', isReadyNow);
    await expectDeploymentRestored(env, Foo, ref, child, [...deploymentEdits('nginx'), replicasEdit]);
    await env.deleteAndWait(Foo.type, ref);
    await env.waitUntilGone(owned.Deployment, child);
  });

  test('a new deploymentName makes the new Deployment before the old one goes', async () => {
    const ref = { namespace, name: 'renamed' };
    await env.createOfKind(Foo, ref, { deploymentName: 'before' });
    await env.waitUntil(Foo.type, ref, 'Ready', isReadyNow);
    await env.patchSpec(Foo, ref, { deploymentName: 'after', replicas: 2 });
    await env.waitUntilGone(owned.Deployment, { namespace, name: 'before' });
    await expectChildren(env, Foo, await env.waitUntil(Foo.type, ref, 'Ready', isReadyNow));
    const writes = (await env.auditLog()).writes();
    const created = writes.indexOf(`create deployments.apps ${namespace}/after 201`);
    expect(created).toBeGreaterThan(-1);
    expect(writes.indexOf(`delete deployments.apps ${namespace}/before 200`)).toBeGreaterThan(created);
  });

  test("somebody else's Deployment of that name is refused and left alone, until it goes", async () => {
    const child = { namespace, name: 'taken' };
    const { uid } = (await env.create(owned.Deployment, child, { spec: foreignSpec })).metadata;
    await env.waitUntil(owned.Deployment, child, 'available', ({ status }) => status?.availableReplicas === 1);
    const ref = { namespace, name: 'refused' };
    await env.createOfKind(Foo, ref, { deploymentName: 'taken' });
    const words = 'Resource "taken" already exists and is not managed by Foo';
    const refused = await env.waitUntil(Foo.type, ref, 'refused', (object) => hasCondition(object, 'Stalled', 'True'));
    expect(findCondition(refused, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrResourceExists' });
    expect(findCondition(refused, 'Ready')?.message).toContain(words);
    expect(refused.status).toMatchObject({ availableReplicas: 0 });
    const event = await waitForEvent(env, refused, 'ErrResourceExists');
    expect(event).toMatchObject({ type: 'Warning', regarding: { kind: 'Foo', name: 'refused' } });
    expect(event.note).toContain(words);

    const after = await env.get(owned.Deployment, child);
    expect(after.spec).toMatchObject(foreignSpec);
    expect(after.metadata).toMatchObject({ uid, generation: 1 });
    expect(after.metadata.ownerReferences).toBeUndefined();
    expect(JSON.stringify(after.metadata)).not.toContain('kindred');

    await env.client.delete(owned.Deployment, child);
    await expectChildren(env, Foo, await env.waitUntil(Foo.type, ref, 'Ready', isReadyNow));
    const log = env.operator.log.all.filter(({ key }) => key === `object:${namespace}/refused`);
    expect([...new Set(log.map(({ msg }) => msg))]).toEqual(['not as the spec says']);
  });

  test('of two that want one name the second is refused, until the first one lets it go', async () => {
    const first = { namespace, name: 'first' };
    const second = { namespace, name: 'second' };
    await env.createOfKind(Foo, first, { deploymentName: 'wanted' });
    await env.waitUntil(Foo.type, first, 'Ready', isReadyNow);
    await env.createOfKind(Foo, second, { deploymentName: 'wanted' });
    await env.waitUntil(Foo.type, second, 'refused', (object) => hasCondition(object, 'Stalled', 'True'));
    await env.patchSpec(Foo, first, { deploymentName: 'unwanted' });
    await expectChildren(env, Foo, await env.waitUntil(Foo.type, second, 'Ready', isReadyNow));
    await expectChildren(env, Foo, await env.waitUntil(Foo.type, first, 'Ready', isReadyNow));
  });

  test.each([0, 11])('kubectl refuses %d replicas', async (replicas) => {
    const object = {
      apiVersion: Foo.apiVersion,
      kind: Foo.kind,
      metadata: { name: 'bad' },
      spec: { deploymentName: 'bad', replicas },
    };
    const { code, stderr } = await env.kubectl(['apply', '-n', namespace, '-f', '-'], JSON.stringify(object));
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('spec.replicas') as string });
  });
}
