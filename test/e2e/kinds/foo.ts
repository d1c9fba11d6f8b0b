import { owned } from '../../../constructs/kube/resource-type';
import { Foo } from '../../../constructs/kinds';
import type { Bench } from '../../support/test-env';
import {
  condition,
  deploymentEdits,
  eventAbout,
  expectChildren,
  expectDeploymentBack,
  is,
  ready,
  replicasEdit,
} from '../../support/assertions';

/** A Deployment of somebody's own. */
const foreignSpec = {
  replicas: 1,
  selector: { matchLabels: { app: 'theirs' } },
  template: { metadata: { labels: { app: 'theirs' } }, spec: { containers: [{ name: 'theirs', image: 'theirs:1' }] } },
};

/** Foo on a real API server. */
export function fooTests(bench: Bench): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await bench.namespace('foo');
  });

  test('the sample gets its Deployment, becomes Ready and is said to be synced', async () => {
    const [sample] = Foo.samples;
    const ref = { namespace, name: sample!.name };
    await bench.make(Foo, ref, sample!.spec);
    const live = await bench.until(Foo.type, ref, 'Ready', ready);
    await expectChildren(bench, Foo, live);
    expect(live.status).toMatchObject({ availableReplicas: 1 });
    expect(await bench.get(owned.Deployment, ref)).toMatchObject({
      metadata: { labels: { app: 'nginx', controller: sample!.name } },
      spec: { template: { spec: { containers: [{ name: 'nginx', image: 'nginx:latest' }] } } },
    });
    const event = await eventAbout(bench, live, 'Synced');
    expect(event).toMatchObject({ type: 'Normal', note: 'Foo synced successfully' });
  });

  test('an edited or deleted Deployment comes back; deleting the Foo removes it', async () => {
    const ref = { namespace, name: 'drifting' };
    const child = { namespace, name: 'drifting-deployment' };
    await bench.make(Foo, ref, { deploymentName: child.name });
    await bench.until(Foo.type, ref, 'Ready', ready);
    await expectDeploymentBack(bench, Foo, ref, child, [...deploymentEdits('nginx'), replicasEdit]);
    await bench.remove(Foo.type, ref);
    await bench.gone(owned.Deployment, child);
  });

  test('a new deploymentName makes the new Deployment before the old one goes', async () => {
    const ref = { namespace, name: 'renamed' };
    await bench.make(Foo, ref, { deploymentName: 'before' });
    await bench.until(Foo.type, ref, 'Ready', ready);
    await bench.respec(Foo, ref, { deploymentName: 'after', replicas: 2 });
    await bench.gone(owned.Deployment, { namespace, name: 'before' });
    await expectChildren(bench, Foo, await bench.until(Foo.type, ref, 'Ready', ready));
    const writes = (await bench.audit()).writes();
    const created = writes.indexOf(`create deployments.apps ${namespace}/after 201`);
    expect(created).toBeGreaterThan(-1);
    expect(writes.indexOf(`delete deployments.apps ${namespace}/before 200`)).toBeGreaterThan(created);
  });

  test("somebody else's Deployment of that name is refused and left alone, until it goes", async () => {
    const child = { namespace, name: 'taken' };
    const { uid } = (await bench.create(owned.Deployment, child, { spec: foreignSpec })).metadata;
    await bench.until(owned.Deployment, child, 'available', ({ status }) => status?.availableReplicas === 1);
    const ref = { namespace, name: 'refused' };
    await bench.make(Foo, ref, { deploymentName: 'taken' });
    const words = 'Resource "taken" already exists and is not managed by Foo';
    const refused = await bench.until(Foo.type, ref, 'refused', (object) => is(object, 'Stalled', 'True'));
    expect(condition(refused, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrResourceExists' });
    expect(condition(refused, 'Ready')?.message).toContain(words);
    expect(refused.status).toMatchObject({ availableReplicas: 0 });
    const event = await eventAbout(bench, refused, 'ErrResourceExists');
    expect(event).toMatchObject({ type: 'Warning', regarding: { kind: 'Foo', name: 'refused' } });
    expect(event.note).toContain(words);

    const after = await bench.get(owned.Deployment, child);
    expect(after.spec).toMatchObject(foreignSpec);
    expect(after.metadata).toMatchObject({ uid, generation: 1 });
    expect(after.metadata.ownerReferences).toBeUndefined();
    expect(JSON.stringify(after.metadata)).not.toContain('kindred');

    await bench.client.delete(owned.Deployment, child);
    await expectChildren(bench, Foo, await bench.until(Foo.type, ref, 'Ready', ready));
    const log = bench.operator.log.all.filter(({ key }) => key === `object:${namespace}/refused`);
    expect([...new Set(log.map(({ msg }) => msg))]).toEqual(['not as the spec says']);
  });

  test('of two that want one name the second is refused, until the first one lets it go', async () => {
    const first = { namespace, name: 'first' };
    const second = { namespace, name: 'second' };
    await bench.make(Foo, first, { deploymentName: 'wanted' });
    await bench.until(Foo.type, first, 'Ready', ready);
    await bench.make(Foo, second, { deploymentName: 'wanted' });
    await bench.until(Foo.type, second, 'refused', (object) => is(object, 'Stalled', 'True'));
    await bench.respec(Foo, first, { deploymentName: 'unwanted' });
    await expectChildren(bench, Foo, await bench.until(Foo.type, second, 'Ready', ready));
    await expectChildren(bench, Foo, await bench.until(Foo.type, first, 'Ready', ready));
  });

  test.each([0, 11])('kubectl refuses %d replicas', async (replicas) => {
    const object = {
      apiVersion: Foo.apiVersion,
      kind: Foo.kind,
      metadata: { name: 'bad' },
      spec: { deploymentName: 'bad', replicas },
    };
    const { code, stderr } = await bench.kubectl(['apply', '-n', namespace, '-f', '-'], JSON.stringify(object));
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('spec.replicas') as string });
  });
}
