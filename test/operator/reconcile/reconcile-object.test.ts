import type { AnyKind } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import { Harness, NAMESPACE, ref, rolledOut } from './harness';

const { Deployment } = owned;
const spec = { image: 'nginx:1', size: 2 };

describe('reconcileObject of a HelloApp', () => {
  let harness: Harness;

  beforeEach(() => {
    harness = new Harness(HelloApp);
  });

  it('creates with exactly one POST and one status write', async () => {
    const { metadata } = await harness.add('web', spec);
    const { next, writes } = await harness.reconcile('web');
    expect(writes).toEqual(['POST Deployment web (kindred)', 'APPLY HelloApp web/status (kindred)']);
    expect(next).toEqual({ action: 'wait', awaited: [] });
    expect(harness.server.requests).toHaveLength(2);
    expect(harness.live(Deployment, 'web').metadata).toMatchObject({
      labels: { app: 'web', 'app.kubernetes.io/managed-by': 'kindred' },
      annotations: { 'kindred.dev/owner-uid': metadata.uid, 'kindred.dev/hash': expect.any(String) as string },
      ownerReferences: [
        {
          apiVersion: 'apps.anupam.com/v1',
          kind: 'HelloApp',
          name: 'web',
          uid: metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    });
    expect(harness.conditions('web')).toEqual(['Ready=False Progressing', 'Reconciling=True Progressing']);
    expect(harness.written).toMatchObject([{ owner: 'HelloApp default/web', ref: ref('web'), action: 'created' }]);
  });

  it('writes nothing, and asks nothing, when nothing changed; after a restart too', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    expect(await harness.reconcile('web')).toEqual({ next: { action: 'wait', awaited: [] }, writes: [] });
    expect(harness.server.requests).toEqual([]);
    const restarted = new Harness(HelloApp);
    for (const cache of [restarted.objects, restarted.cacheOf(Deployment)]) harness.server.attachCache(cache);
    const context = { ...restarted.context, client: harness.server };
    Object.assign(restarted, { context, server: harness.server });
    expect((await restarted.reconcile('web')).writes).toEqual([]);
  });

  it('shows the roll-out in the status and becomes Ready', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    harness.server.setStatus(Deployment, ref('web'), rolledOut(2));
    expect((await harness.reconcile('web')).writes).toEqual(['APPLY HelloApp web/status (kindred)']);
    expect(harness.object('web').status).toEqual({
      replicas: 2,
      readyReplicas: 2,
      selector: 'app=web',
      observedGeneration: 1,
      conditions: [
        expect.objectContaining({ type: 'Ready', status: 'True', reason: 'Ready', observedGeneration: 1 }) as object,
      ],
    });
  });

  it("shows a quota's words in Ready while pods are refused", async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    const message = 'pods "web-1" is forbidden: exceeded quota: default-resource-quota';
    const conditions = [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message }];
    harness.server.setStatus(Deployment, ref('web'), { observedGeneration: 1, conditions });
    await harness.reconcile('web');
    expect(harness.message('web')).toBe(`Deployment "web": ${message}`);
  });

  it('puts drift right and says why', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    harness.server.scale(Deployment, ref('web'), 7);
    const { writes } = await harness.reconcile('web');
    expect(writes).toContain('APPLY Deployment web (kindred)');
    expect(harness.live(Deployment, 'web').spec).toMatchObject({ replicas: 2 });
    expect(harness.written.at(-1)).toMatchObject({ action: 'applied', because: 'spec.replicas' });
    expect((await harness.reconcile('web')).writes).toEqual([]);
  });

  it('leaves what others added alone', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    harness.server.edit(Deployment, ref('web'), (live) => ({
      ...live,
      metadata: { ...live.metadata, annotations: { ...live.metadata.annotations, 'example.com/note': 'kept' } },
    }));
    expect((await harness.reconcile('web')).writes).toEqual([]);
    harness.respec('web', { image: 'nginx:2' });
    await harness.reconcile('web');
    expect(harness.live(Deployment, 'web').metadata.annotations).toMatchObject({ 'example.com/note': 'kept' });
  });

  it('moves what a POST created from Update to Apply before its first apply, once', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    harness.respec('web', { image: 'nginx:2' });
    const { writes } = await harness.reconcile('web');
    expect(writes.slice(0, 2)).toEqual(['PATCH Deployment web (kindred)', 'APPLY Deployment web (kindred)']);
    const entries = (
      harness.live(Deployment, 'web').metadata as { managedFields?: { manager: string; operation: string }[] }
    ).managedFields;
    expect(entries?.map(({ manager, operation }) => `${manager} ${operation}`)).toEqual(['kindred Apply']);
    harness.respec('web', { image: 'nginx:3' });
    expect((await harness.reconcile('web')).writes[0]).toBe('APPLY Deployment web (kindred)');
  });

  it('reads the child before that only when it has changed since it was cached', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    harness.respec('web', { image: 'nginx:2' });
    harness.server.eventDelivery = 'held';
    harness.server.edit(Deployment, ref('web'), (live) => ({ ...live, status: { replicas: 1 } }));
    await harness.reconcile('web');
    const verbs = harness.server.requests.map(({ verb, type }) => `${verb} ${type.kind}`);
    expect(verbs.slice(0, 4)).toEqual(['PATCH Deployment', 'GET Deployment', 'PATCH Deployment', 'APPLY Deployment']);
    expect(harness.live(Deployment, 'web').spec).toHaveProperty('template.spec.containers.0.image', 'nginx:2');
  });

  it('carries the uid in every write to an object that exists', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    const { uid } = harness.live(Deployment, 'web').metadata;
    harness.respec('web', { image: 'nginx:2' });
    await harness.reconcile('web');
    const [patch, apply, status] = harness.server.requests;
    expect(patch?.body).toContainEqual(expect.objectContaining({ path: '/metadata/uid', value: uid }));
    expect(apply?.body).toMatchObject({ metadata: { uid } });
    expect(status?.body).toMatchObject({ metadata: { uid: harness.object('web').metadata.uid } });
  });

  it('brings a deleted child back by POST', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    harness.server.remove(Deployment, ref('web'));
    expect((await harness.reconcile('web')).writes).toEqual(['POST Deployment web (kindred)']);
  });

  it('never brings back by apply what was deleted behind its back', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    harness.respec('web', { size: 3 });
    harness.server.eventDelivery = 'held';
    harness.server.remove(Deployment, ref('web'));
    await expect(harness.reconcile('web')).rejects.toMatchObject({ reason: 'Conflict' });
    expect(harness.server.peek(Deployment, ref('web'))).toBeUndefined();
    harness.server.deliverEvents();
    expect((await harness.reconcile('web')).writes).toContain('POST Deployment web (kindred)');
  });

  it('applies nothing to an object that is being deleted', async () => {
    await harness.add('web', spec, { finalizers: ['example.com/hold'] });
    await harness.reconcile('web');
    harness.server.remove(HelloApp.type, ref('web'));
    harness.server.remove(Deployment, ref('web'));
    expect((await harness.reconcile('web')).writes).toEqual(['APPLY HelloApp web/status (kindred)']);
    expect(await harness.reconcile('web')).toEqual({ next: { action: 'wait' }, writes: [] });
    expect(await harness.reconcile('nobody')).toEqual({ next: { action: 'wait' }, writes: [] });
  });

  it('does not write a status anew for what JSON leaves out of it', async () => {
    const observe = (): object => ({ replicas: { ready: 1, since: undefined } });
    harness = new Harness({ ...HelloApp, observe } as AnyKind);
    await harness.add('web', spec);
    await harness.reconcile('web');
    expect(harness.object('web').status).toMatchObject({ replicas: { ready: 1 } });
    expect((await harness.reconcile('web')).writes).toEqual([]);
  });

  it('tells of the gravest that is wrong, of its own children and of those that it shares', async () => {
    harness = new Harness(MicroServiceDeploy);
    const message = 'Service "shop": it is taken';
    harness.sharedState = () => ({
      state: 'failed',
      readiness: { state: 'stalled', reason: 'ErrResourceExists', message },
    });
    await harness.add('shop', { msName: 'shop', fullName: 'shop', version: '1', path: 'v1', image: 'i' });
    await harness.reconcile('shop');
    harness.server.edit(Deployment, ref('shop'), (live) => ({
      ...live,
      metadata: { ...live.metadata, finalizers: ['example.com/x'] },
    }));
    harness.server.remove(Deployment, ref('shop'));
    await harness.reconcile('shop');
    expect(harness.conditions('shop')[0]).toBe('Ready=False ErrResourceExists');
  });

  it('stops while paused, shows it, and goes on afterwards', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    harness.server.edit(HelloApp.type, ref('web'), (object) => ({
      ...object,
      metadata: { ...object.metadata, annotations: { 'kindred.dev/paused': 'true' } },
      spec: { image: 'nginx:2' },
    }));
    expect((await harness.reconcile('web')).writes).toEqual(['APPLY HelloApp web/status (kindred)']);
    expect(harness.conditions('web')).toEqual(['Ready=Unknown Paused']);
    expect(harness.object('web').status).toMatchObject({ selector: 'app=web' });
    expect((await harness.reconcile('web')).writes).toEqual([]);
    harness.annotate('web', { 'kindred.dev/paused': 'false' });
    expect((await harness.reconcile('web')).writes).toContain('APPLY Deployment web (kindred)');
  });

  it('isolates a spec that does not fit, keeps its children, and says which field is wrong', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    harness.respec('web', { size: -1 });
    const { next, writes } = await harness.reconcile('web');
    expect(writes).toEqual(['APPLY HelloApp web/status (kindred)']);
    expect(next).toMatchObject({ action: 'wait', failed: { reason: 'ErrInvalidSpec' } });
    expect(harness.conditions('web')).toEqual(['Ready=False ErrInvalidSpec', 'Stalled=True ErrInvalidSpec']);
    expect(harness.message('web')).toMatch(/^HelloApp default\/web is invalid:\n {2}spec\.size: /);
    expect(harness.object('web').status).toMatchObject({ selector: 'app=web', observedGeneration: 2 });
    expect(harness.events).toMatchObject([{ type: 'Warning', reason: 'ErrInvalidSpec' }]);
  });

  it('keeps the transition time while the status of a condition stays', async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    harness.seconds = 5;
    harness.server.setStatus(Deployment, ref('web'), { observedGeneration: 1, replicas: 1, updatedReplicas: 1 });
    await harness.reconcile('web');
    expect(harness.message('web')).toBe('Deployment "web": 1 of 2 replicas updated');
    expect(harness.object('web').status.conditions[0]?.lastTransitionTime).toBe('2026-01-01T00:00:00Z');
    harness.server.setStatus(Deployment, ref('web'), rolledOut(2));
    await harness.reconcile('web');
    expect(harness.object('web').status.conditions[0]?.lastTransitionTime).toBe('2026-01-01T00:00:05Z');
  });

  it("keeps other writers' status fields and conditions, and does not take them for a difference", async () => {
    await harness.add('web', spec);
    await harness.reconcile('web');
    const { status } = harness.object('web');
    const foreign = {
      type: 'Audited',
      status: 'True',
      reason: 'Seen',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    harness.server.setStatus(HelloApp.type, ref('web'), { ...status, conditions: [foreign, ...status.conditions] });
    expect((await harness.reconcile('web')).writes).toEqual([]);
    harness.server.setStatus(Deployment, ref('web'), rolledOut(2));
    await harness.reconcile('web');
    expect([...harness.conditions('web')].sort()).toEqual(['Audited=True Seen', 'Ready=True Ready']);
  });

  it('is quiet in a namespace that is being deleted', async () => {
    await harness.add('web', spec);
    harness.server.terminating.add(NAMESPACE);
    const { next } = await harness.reconcile('web');
    expect(next).toEqual({ action: 'wait', awaited: [{ type: Deployment, ref: ref('web') }] });
    expect(harness.conditions('web')).toEqual(['Ready=False Waiting', 'Reconciling=True Waiting']);
    expect(harness.events).toEqual([]);
    expect((await harness.reconcile('web')).writes).toEqual(['POST Deployment web (kindred)']);
  });
});
