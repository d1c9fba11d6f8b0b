import { z } from 'zod';
import { defineKind } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { DemoMicroService, Foo, HelloApp } from '../../../constructs/kinds';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { reconcileObject } from '../../../operator/reconcile/reconcile-object';
import { Harness, NAMESPACE, ref, rolledOut } from './harness';

const { Deployment } = owned;

function deployment(name: string, metadata: object = {}): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: NAMESPACE, ...metadata },
    spec: {
      replicas: 1,
      selector: { matchLabels: { x: 'y' } },
      template: { metadata: { labels: { x: 'y' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  };
}

async function strangers(harness: Harness, name: string, metadata: object = {}): Promise<KubeObject> {
  return harness.server.create(Deployment, deployment(name, metadata), { fieldManager: 'kubectl' });
}

describe('a name that is taken', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = new Harness(Foo);
    await strangers(harness, 'taken');
    await harness.add('foo', { deploymentName: 'taken' });
  });

  it('is refused without any write to it, in the words of the original', async () => {
    const before = harness.live(Deployment, 'taken');
    const { next, writes } = await harness.reconcile('foo');
    expect(writes).toEqual(['APPLY Foo foo/status (kindred)']);
    expect(harness.live(Deployment, 'taken')).toEqual(before);
    expect(next).toEqual({
      action: 'wait',
      failed: { reason: 'ErrResourceExists', message: harness.message('foo') },
      awaited: [{ type: Deployment, ref: ref('taken') }],
    });
    expect(harness.conditions('foo')).toEqual(['Ready=False ErrResourceExists', 'Stalled=True ErrResourceExists']);
    expect(harness.message('foo')).toBe(
      'Deployment default/taken: Resource "taken" already exists and is not managed by Foo',
    );
    expect(harness.events).toEqual([
      {
        regarding: 'foo',
        type: 'Warning',
        action: 'Apply',
        reason: 'ErrResourceExists',
        message: harness.message('foo'),
      },
    ]);
  });

  it('says nothing of a stranger in the status', async () => {
    harness.server.setStatus(Deployment, ref('taken'), rolledOut(1));
    await harness.reconcile('foo');
    expect(harness.object('foo').status).toMatchObject({ availableReplicas: 0 });
  });

  it('is refused by POST when the cache does not know of it', async () => {
    harness.cacheOf(Deployment).replace([], '1');
    expect((await harness.reconcile('foo')).writes).toEqual([
      'POST Deployment taken (kindred)',
      'APPLY Foo foo/status (kindred)',
    ]);
    expect(harness.conditions('foo')[0]).toBe('Ready=False ErrResourceExists');
    expect(harness.live(Deployment, 'taken').metadata.ownerReferences).toBeUndefined();
  });

  it('is created once the obstacle is gone', async () => {
    await harness.reconcile('foo');
    harness.server.remove(Deployment, ref('taken'));
    expect((await harness.reconcile('foo')).writes).toEqual([
      'POST Deployment taken (kindred)',
      'APPLY Foo foo/status (kindred)',
    ]);
  });

  function agree(name: string): void {
    harness.server.edit(Deployment, ref(name), (live) => ({
      ...live,
      metadata: { ...live.metadata, annotations: { 'kindred.dev/adopt': 'true' } },
    }));
  }

  it('is not taken over because the owner asks for it; the status says who can agree, and how', async () => {
    harness.annotate('foo', { 'kindred.dev/adopt': 'true' });
    const before = harness.live(Deployment, 'taken');
    expect((await harness.reconcile('foo')).writes).toEqual(['APPLY Foo foo/status (kindred)']);
    expect(harness.live(Deployment, 'taken')).toEqual(before);
    expect(harness.conditions('foo')).toEqual(['Ready=False ErrResourceExists', 'Stalled=True ErrResourceExists']);
    expect(harness.message('foo')).toContain(
      'kubectl annotate deployments.apps taken --namespace=default kindred.dev/adopt=true',
    );
    harness.server.remove(Foo.type, ref('foo'));
    expect(harness.live(Deployment, 'taken')).toEqual(before);
  });

  it('is taken over when it bears the consent itself, and only if nobody controls it', async () => {
    agree('taken');
    expect((await harness.reconcile('foo')).writes.slice(0, 2)).toEqual([
      'PATCH Deployment taken (kindred)',
      'APPLY Deployment taken (kindred)',
    ]);
    expect(harness.live(Deployment, 'taken')).toMatchObject({
      metadata: { ownerReferences: [{ kind: 'Foo', name: 'foo', controller: true }] },
      spec: { template: { spec: { containers: [{ name: 'c' }, { name: 'nginx' }] } } },
    });
    const controller = { apiVersion: 'example.com/v1', kind: 'Other', name: 'other', uid: 'u', controller: true };
    await strangers(harness, 'controlled', { ownerReferences: [controller] });
    agree('controlled');
    harness.respec('foo', { deploymentName: 'controlled' });
    await harness.reconcile('foo');
    expect(harness.conditions('foo')[0]).toBe('Ready=False ErrResourceExists');
    expect(harness.live(Deployment, 'taken')).toBeDefined();
  });

  it('stays whose it was when the consent is taken back before it is used', async () => {
    agree('taken');
    harness.server.eventDelivery = 'held';
    harness.server.edit(Deployment, ref('taken'), (live) => ({
      ...live,
      metadata: { ...live.metadata, annotations: {} },
    }));
    await expect(harness.reconcile('foo')).rejects.toMatchObject({ reason: 'Conflict' });
    expect(harness.live(Deployment, 'taken').metadata.ownerReferences).toBeUndefined();
  });

  it('that was taken over while the consent stood on the owner stays owned, with and without that annotation', async () => {
    const { uid = '' } = harness.object('foo').metadata;
    const { apiVersion, kind } = Foo;
    const reference = { apiVersion, kind, name: 'foo', uid, controller: true, blockOwnerDeletion: true };
    harness.server.edit(Deployment, ref('taken'), (live) => ({
      ...live,
      metadata: { ...live.metadata, ownerReferences: [reference], annotations: { 'kindred.dev/owner-uid': uid } },
    }));
    for (const annotations of [{ 'kindred.dev/adopt': 'true' }, {}]) {
      harness.annotate('foo', annotations as Record<string, string>);
      await harness.reconcile('foo');
      expect(harness.conditions('foo')[0]).toBe('Ready=False Progressing');
      expect(harness.live(Deployment, 'taken').metadata.ownerReferences).toEqual([reference]);
    }
    expect((await harness.reconcile('foo')).writes).toEqual([]);
  });
});

describe('owner references', () => {
  it('come back when somebody stripped them off', async () => {
    const harness = new Harness(HelloApp);
    const { metadata } = await harness.add('web', { image: 'i' });
    await harness.reconcile('web');
    harness.server.edit(Deployment, ref('web'), (live) => ({
      ...live,
      metadata: { ...live.metadata, ownerReferences: [] },
    }));
    await harness.reconcile('web');
    expect(harness.live(Deployment, 'web').metadata.ownerReferences).toMatchObject([
      { uid: metadata.uid, controller: true },
    ]);
  });

  it('of a former object of the name are waited for, quietly', async () => {
    const harness = new Harness(HelloApp);
    await harness.add('web', { image: 'i' });
    await harness.reconcile('web');
    harness.server.remove(HelloApp.type, ref('web'));
    await harness.add('web', { image: 'i' });
    const { next, writes } = await harness.reconcile('web');
    expect(writes).toEqual(['APPLY HelloApp web/status (kindred)']);
    expect(next).toEqual({ action: 'wait', awaited: [{ type: Deployment, ref: ref('web') }] });
    expect(harness.message('web')).toBe(
      'Deployment "web": the child of a deleted object of the same name still stands',
    );
    harness.server.collectGarbage();
    expect((await harness.reconcile('web')).writes[0]).toBe('POST Deployment web (kindred)');
  });

  it('do not stand after --cascade=orphan, and nobody claims the orphans', async () => {
    const harness = new Harness(HelloApp);
    await harness.add('web', { image: 'i' });
    await harness.reconcile('web');
    harness.server.remove(HelloApp.type, ref('web'), 'Orphan');
    expect((await harness.reconcile('web')).writes).toEqual([]);
    harness.server.collectGarbage();
    expect(harness.server.peek(HelloApp.type, ref('web'))).toBeUndefined();
    expect(harness.live(Deployment, 'web').metadata.ownerReferences).toEqual([]);
    await harness.add('web', { image: 'i' });
    await harness.reconcile('web');
    expect(harness.conditions('web')[0]).toBe('Ready=False ErrResourceExists');
  });
});

describe('a new name for a child', () => {
  it('creates the new one, and only then deletes the old one, by uid', async () => {
    const harness = new Harness(Foo);
    await harness.add('foo', { deploymentName: 'old' });
    await harness.reconcile('foo');
    const { uid } = harness.live(Deployment, 'old').metadata;
    harness.respec('foo', { deploymentName: 'new' });
    const { writes } = await harness.reconcile('foo');
    expect(writes.slice(0, 2)).toEqual(['POST Deployment new (kindred)', 'DELETE Deployment old (Background)']);
    expect(harness.server.requests[1]?.options).toMatchObject({ uid });
    expect(harness.server.peek(Deployment, ref('old'))).toBeUndefined();
  });

  it('keeps the old one while the new one cannot be had', async () => {
    const harness = new Harness(Foo);
    await harness.add('foo', { deploymentName: 'old' });
    await harness.reconcile('foo');
    await strangers(harness, 'new');
    harness.respec('foo', { deploymentName: 'new' });
    expect((await harness.reconcile('foo')).writes).toEqual(['APPLY Foo foo/status (kindred)']);
    expect(harness.live(Deployment, 'old')).toBeDefined();
  });

  it('never deletes what only refers to the object without being controlled by it', async () => {
    const harness = new Harness(Foo);
    const { metadata } = await harness.add('foo', { deploymentName: 'mine' });
    const reference = { apiVersion: 'samplecontroller.k8s.io/v1alpha1', kind: 'Foo', name: 'foo', uid: metadata.uid };
    await strangers(harness, 'guest', { ownerReferences: [reference] });
    await harness.reconcile('foo');
    await harness.reconcile('foo');
    expect(harness.live(Deployment, 'guest')).toBeDefined();
  });
});

describe('a Foo', () => {
  it('records Synced when it wrote or a new generation was taken in, and not otherwise', async () => {
    const harness = new Harness(Foo);
    await harness.add('foo', { deploymentName: 'd' });
    await harness.reconcile('foo');
    await harness.reconcile('foo');
    expect(harness.events).toEqual([
      { regarding: 'foo', type: 'Normal', action: 'Sync', reason: 'Synced', message: 'Foo synced successfully' },
    ]);
    harness.server.remove(Deployment, ref('d'));
    await harness.reconcile('foo');
    expect(harness.events).toHaveLength(2);
  });
});

describe('a DemoMicroService', () => {
  const FINALIZER = 'demomicroservice.finalizers.devops.my.domain';
  let harness: Harness;

  beforeEach(async () => {
    harness = new Harness(DemoMicroService);
    await harness.add('dms', { image: 'i' }, { finalizers: ['example.com/other'] });
  });

  it('bears its finalizer before it has a child', async () => {
    const { resourceVersion } = harness.object('dms').metadata;
    const { writes } = await harness.reconcile('dms');
    expect(writes).toEqual([
      'PATCH DemoMicroService dms (kindred-finalizer)',
      'POST Deployment dms (kindred)',
      'APPLY DemoMicroService dms/status (kindred)',
    ]);
    expect(harness.server.requests[0]?.body).toMatchObject({ metadata: { resourceVersion } });
    expect(harness.object('dms').metadata.finalizers).toEqual(['example.com/other', FINALIZER]);
    expect((await harness.reconcile('dms')).writes).toEqual([]);
  });

  it('goes after its Deployment: foreground deletion, then the finalizer, and nothing twice', async () => {
    await harness.reconcile('dms');
    const { uid } = harness.live(Deployment, 'dms').metadata;
    harness.server.remove(DemoMicroService.type, ref('dms'));
    expect((await harness.reconcile('dms')).writes).toEqual(['DELETE Deployment dms (Foreground)']);
    expect(harness.server.requests[0]?.options).toMatchObject({ uid });
    const [status] = (await harness.reconcile('dms')).writes;
    expect(status).toBe('APPLY DemoMicroService dms/status (kindred)');
    expect((await harness.reconcile('dms')).writes).toEqual([]);
    expect(harness.object('dms').metadata.finalizers).toContain(FINALIZER);
    harness.server.collectGarbage();
    expect((await harness.reconcile('dms')).writes).toEqual(['PATCH DemoMicroService dms (kindred-finalizer)']);
    expect(harness.object('dms').metadata.finalizers).toEqual(['example.com/other']);
    expect((await harness.reconcile('dms')).writes).toEqual([status]);
    expect((await harness.reconcile('dms')).writes).toEqual([]);
  });

  it('leaves its Deployment alone when it is orphaned', async () => {
    await harness.reconcile('dms');
    harness.server.remove(DemoMicroService.type, ref('dms'), 'Orphan');
    expect((await harness.reconcile('dms')).writes).toEqual(['PATCH DemoMicroService dms (kindred-finalizer)']);
    expect(harness.live(Deployment, 'dms').metadata.deletionTimestamp).toBeUndefined();
  });

  it('leaves its Deployment alone when the orphaning was heard of before its end', async () => {
    await harness.reconcile('dms');
    harness.server.eventDelivery = 'held';
    harness.server.remove(DemoMicroService.type, ref('dms'), 'Orphan');
    harness.server.collectGarbage();
    // The watch of the kind is ahead of that of its children.
    harness.objects.applyChange(harness.object('dms'));
    await expect(harness.reconcile('dms')).rejects.toMatchObject({ reason: 'Conflict' });
    expect(harness.server.writes).toEqual(['DELETE Deployment dms (Foreground)']);
    expect(harness.live(Deployment, 'dms').metadata.deletionTimestamp).toBeUndefined();
    harness.server.deliverEvents();
    expect((await harness.reconcile('dms')).writes).toEqual(['PATCH DemoMicroService dms (kindred-finalizer)']);
  });

  it('rolls its Deployment when the image changes', async () => {
    await harness.reconcile('dms');
    harness.respec('dms', { image: 'j' });
    expect((await harness.reconcile('dms')).writes).toContain('APPLY Deployment dms (kindred)');
    expect(harness.live(Deployment, 'dms')).toMatchObject({
      spec: { template: { spec: { containers: [{ image: 'j' }] } } },
    });
  });
});

it('what was owned once is deleted in whichever namespace it stands, for an owner that is in none', async () => {
  const Wide = defineKind({
    ...{ group: 'test.kindred.dev', version: 'v1', kind: 'Wide', plural: 'wides', scope: 'Cluster' },
    ...{ description: 'A kind for tests.', spec: z.object({}), owns: [], formerlyOwned: [Deployment] },
    children: () => undefined,
  });
  const harness = new Harness(Wide);
  const { apiVersion, kind, type } = Wide;
  const body = { apiVersion, kind, metadata: { name: 'wide' } };
  const { uid = '' } = (await harness.server.create(type, body, { fieldManager: 'kubectl' })).metadata;
  const owner = { apiVersion, kind, name: 'wide', uid, controller: true };
  await strangers(harness, 'old', { namespace: 'team', ownerReferences: [owner] });
  await strangers(harness, 'other', { namespace: 'team' });
  await reconcileObject(harness.context, { name: 'wide' });
  expect(harness.server.peek(Deployment, { namespace: 'team', name: 'old' })).toBeUndefined();
  expect(harness.server.peek(Deployment, { namespace: 'team', name: 'other' })).toBeDefined();
});
