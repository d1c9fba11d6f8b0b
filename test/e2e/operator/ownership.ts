import { isDeepStrictEqual } from 'node:util';
import { DemoMicroService, HelloApp, MicroServiceDeploy, SampleResource } from '../../../constructs/kinds';
import { ADOPT_ANNOTATION, OWNER_UID_ANNOTATION } from '../../../constructs/kube/envelope';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import {
  waitForChildren,
  findCondition,
  expectChildren,
  hasCondition,
  waitUntilIdle,
  isReadyNow,
} from '../../support/assertions';
import { operatorKinds, type TestEnv } from '../../support/test-env';

const REPLICA_SETS: ResourceType = {
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  scope: 'Namespaced',
};

/** Whose a child is, on a real API server. */
export function ownershipTests(env: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await env.namespace('own');
  });
  const stalled = (name: string) =>
    env.waitUntil(HelloApp.type, { namespace, name }, 'refused', (object) => hasCondition(object, 'Stalled', 'True'));
  const orphan = async (what: string): Promise<void> => {
    const { code, stderr } = await env.kubectl(['delete', what, '--cascade=orphan', '-n', namespace]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
  };

  test('a stripped owner reference is put back', async () => {
    const ref = { namespace, name: 'stripped' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    const live = await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    const { uid } = (await env.get(owned.Deployment, ref)).metadata;
    await env.patch(owned.Deployment, ref, { metadata: { ownerReferences: null } });
    await waitForChildren(env, HelloApp, live);
    expect((await env.get(owned.Deployment, ref)).metadata.uid).toBe(uid);
  });

  test("an object without an owner is not re-owned under a stranger's UID, until a person says so", async () => {
    const ref = { namespace, name: 'estranged' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    const stranger = { [OWNER_UID_ANNOTATION]: '00000000-0000-0000-0000-000000000000' };
    await env.patch(owned.Deployment, ref, { metadata: { ownerReferences: null, annotations: stranger } });
    expect(findCondition(await stalled(ref.name), 'Ready')).toMatchObject({ reason: 'ErrResourceExists' });
    const { metadata } = await env.get(owned.Deployment, ref);
    expect(metadata.ownerReferences).toBeUndefined();

    await env.patch(owned.Deployment, ref, { metadata: { annotations: { [ADOPT_ANNOTATION]: 'true' } } });
    const adopted = await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await waitForChildren(env, HelloApp, adopted);
    expect((await env.get(owned.Deployment, ref)).metadata.uid).toBe(metadata.uid);
  });

  test("somebody else's object is taken over when it bears the consent, by the command that the status names", async () => {
    const ref = { namespace, name: 'adopted' };
    const labels = { app: ref.name };
    const containers = [{ name: 'helloapp', image: 'theirs:1' }];
    const template = { metadata: { labels }, spec: { containers } };
    await env.create(owned.Deployment, ref, { spec: { replicas: 3, selector: { matchLabels: labels }, template } });
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1', size: 1 });
    await stalled(ref.name);
    await env.patch(HelloApp.type, ref, { metadata: { annotations: { [ADOPT_ANNOTATION]: 'true' } } });
    const asking = await env.waitUntil(
      HelloApp.type,
      ref,
      'told where consent must stand',
      (object) => findCondition(object, 'Ready')?.message.includes('kubectl annotate ') === true,
    );
    expect((await env.get(owned.Deployment, ref)).metadata.ownerReferences).toBeUndefined();
    const [, command = ''] = findCondition(asking, 'Ready')?.message.split('kubectl ') ?? [];
    expect(await env.kubectl(command.split(' '))).toMatchObject({ code: 0 });
    await waitForChildren(env, HelloApp, await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow));
  });

  test('a Deployment that is taken over with another selector is made anew by the command that the status names', async () => {
    const ref = { namespace, name: 'selected' };
    const labels = { app: ref.name, tier: 'theirs' };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'helloapp', image: 'theirs:1' }] } };
    const metadata = { ...ref, annotations: { [ADOPT_ANNOTATION]: 'true' } };
    const { uid } = (
      await env.create(owned.Deployment, metadata, { spec: { selector: { matchLabels: labels }, template } })
    ).metadata;
    const old = await env.eventually('its ReplicaSet', async () =>
      (await env.client.list(REPLICA_SETS, { namespace, labelSelector: 'tier=theirs' })).items.at(0),
    );
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1', size: 1 });
    const ready = findCondition(await stalled(ref.name), 'Ready');
    expect(ready).toMatchObject({ reason: 'ErrInvalidChild' });
    expect(ready?.message).toContain('field is immutable');
    const [, command = ''] = /`kubectl ([^`]+--cascade=orphan)`/.exec(ready?.message ?? '') ?? [];
    // kubectl waits for the deletion of whatever has the name when it begins to watch. If the operator has made the
    // new Deployment by then, that never comes.
    const deletion = await env.kubectl([...command.split(' '), '--wait=false']);
    expect(deletion).toMatchObject({ code: 0, stderr: '' });
    await waitForChildren(env, HelloApp, await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow));
    const made = await env.get(owned.Deployment, ref);
    expect(made.metadata.uid).not.toBe(uid);
    // The new selector matches the old ReplicaSet, which serves until the new one does.
    const taken = await env.waitUntil(REPLICA_SETS, { namespace, name: old.metadata.name }, 'taken over', (set) =>
      isDeepStrictEqual(
        set.metadata.ownerReferences?.map((owner) => owner.uid),
        [made.metadata.uid],
      ),
    );
    expect(taken.metadata.uid).toBe(old.metadata.uid);
  });

  test('--cascade=orphan leaves a Deployment alone, and a namesake does not take it', async () => {
    const ref = { namespace, name: 'orphaned' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    const { uid } = (await env.get(owned.Deployment, ref)).metadata;
    await orphan('helloapp/orphaned');
    await env.waitUntilGone(HelloApp.type, ref);
    const left = await env.get(owned.Deployment, ref);
    expect(left.metadata).toMatchObject({ uid });
    expect(left.metadata.ownerReferences).toBeUndefined();
    expect(left.metadata.deletionTimestamp).toBeUndefined();

    await env.createOfKind(HelloApp, ref, { image: 'nginx:2' });
    expect(findCondition(await stalled(ref.name), 'Ready')).toMatchObject({ reason: 'ErrResourceExists' });
    expect((await env.get(owned.Deployment, ref)).metadata.ownerReferences).toBeUndefined();
  });

  test('--cascade=orphan leaves what a finalizer would have deleted', async () => {
    const ref = { namespace, name: 'finalized' };
    await env.createOfKind(DemoMicroService, ref, { image: 'podinfo:1' });
    await env.waitUntil(DemoMicroService.type, ref, 'Ready', isReadyNow);
    await orphan('dms/finalized');
    await env.waitUntilGone(DemoMicroService.type, ref);
    const { metadata } = await env.get(owned.Deployment, ref);
    expect(metadata.ownerReferences).toBeUndefined();
    expect(metadata.deletionTimestamp).toBeUndefined();
  });

  test('--cascade=orphan leaves what is shared', async () => {
    const ref = { namespace, name: 'ms' };
    await env.createOfKind(MicroServiceDeploy, ref, {
      msName: 'ms',
      fullName: 'ms-v1',
      version: '1',
      path: 'v1',
      image: 'ms:1',
    });
    await env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow);
    await orphan('microservicedeploy/ms');
    await env.waitUntilGone(MicroServiceDeploy.type, ref);
    for (const [type, name] of [
      [owned.Service, 'ms'],
      [owned.ServiceAccount, 'ms'],
      [owned.Deployment, 'ms-v1'],
      [owned.ConfigMap, 'ms-v1'],
      [owned.Service, 'ms-v1'],
    ] as const) {
      const { metadata } = await env.get(type, { namespace, name });
      expect(metadata.ownerReferences).toBeUndefined();
      expect(metadata.deletionTimestamp).toBeUndefined();
    }
  });

  test('a namesake of a deleted object waits for the old Deployment and makes its own', async () => {
    const ref = { namespace, name: 'again' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    const { uid } = (await env.get(owned.Deployment, ref)).metadata;
    await env.deleteAndWait(HelloApp.type, ref);
    await env.createOfKind(HelloApp, ref, { image: 'nginx:2' });
    await waitForChildren(env, HelloApp, await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow));
    expect((await env.get(owned.Deployment, ref)).metadata.uid).not.toBe(uid);
  });
}

/** Several who want one thing, on a real API server. */
export function contestTests(env: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await env.namespace('contest');
  });

  test('a writer that insists is named, and neither side runs hot; once it stops, the operator wins', async () => {
    const ref = { namespace, name: 'contested' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    const contested = await env.eventually('the contest to be noticed', async () => {
      await env.kubectl(['scale', 'deployment', ref.name, '--replicas=7', '--namespace', namespace]);
      const object = await env.get(HelloApp.type, ref);
      return findCondition(object, 'Ready')?.reason === 'ErrContested' ? object : undefined;
    });
    expect(findCondition(contested, 'Ready')?.message).toContain('spec.replicas is changed by "kubectl"');
    await waitForChildren(env, HelloApp, contested);
    // Another value ends the contest at once; without, it takes a minute.
    await env.patch(HelloApp.type, ref, { spec: { size: 3 } });
    await waitForChildren(env, HelloApp, await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow));
  });

  test('of two kinds that want one name the second is refused, until the first one goes', async () => {
    const ref = { namespace, name: 'both' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await env.createOfKind(SampleResource, ref, { podImage: 'nginx:2' });
    const refused = await env.waitUntil(SampleResource.type, ref, 'refused', (object) =>
      hasCondition(object, 'Stalled', 'True'),
    );
    expect(findCondition(refused, 'Ready')?.message).toContain('already exists and is not managed by SampleResource');
    await env.waitUntil(HelloApp.type, ref, 'Ready as before', isReadyNow);
    await env.deleteAndWait(HelloApp.type, ref);
    await expectChildren(env, SampleResource, await env.waitUntil(SampleResource.type, ref, 'Ready', isReadyNow));
  });
}

const NAMESPACES: ResourceType = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', scope: 'Cluster' };

/** The end of a namespace in which objects stand, on a real API server. */
export function namespaceEndTests(env: TestEnv): void {
  test('a namespace with an object of every kind ends cleanly and quietly', async () => {
    const namespace = await env.namespace('ending');
    const samples = operatorKinds.flatMap((kind) => kind.samples.map((sample) => ({ kind, ...sample })));
    await Promise.all(samples.map(({ kind, name, spec }) => env.createOfKind(kind, { namespace, name }, spec)));
    for (const { kind, name } of samples) await env.waitUntil(kind.type, { namespace, name }, 'Ready', isReadyNow);
    const logged = env.operator.log.all.length;
    await env.client.delete(NAMESPACES, { name: namespace });
    await env.waitUntilGone(NAMESPACES, { name: namespace });
    await waitUntilIdle(env, env.operator);
    const lines = env.operator.log.all.slice(logged).filter(({ controller, level }) => {
      return controller !== undefined && level !== 'info';
    });
    expect(lines).toEqual([]);
  });
}
