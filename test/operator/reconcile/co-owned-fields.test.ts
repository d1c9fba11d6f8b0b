import { ApiObject, JsonPatch } from 'cdk8s';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { CronTab, MicroServiceDeploy } from '../../../constructs/kinds';
import { reconcileObject } from '../../../operator/reconcile/reconcile-object';
import { managedFieldsOf } from '../../../testing/api-server/managed-fields';
import { apiError } from '../../../testing/api-server/requests';
import { Harness, ref } from './harness';

const { CronJob, Deployment, HorizontalPodAutoscaler, Service } = owned;
const cron = { cronSpec: '@hourly', image: 'i', timeZone: 'Europe/Berlin', command: ['run'] };
const shop = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i' };

async function reconciled(kind: AnyKind, name: string, spec: object): Promise<Harness> {
  const harness = new Harness(kind);
  await harness.add(name, spec);
  await harness.reconcile(name);
  return harness;
}

/** Another client applies a child as it is, as `kubectl apply --server-side --force-conflicts` does. */
async function applyAsIs(harness: Harness, type: ResourceType, name: string, more: object = {}): Promise<void> {
  const { metadata, status: _, ...body } = harness.live(type, name) as KubeObject & { readonly status?: unknown };
  const { name: named, namespace, labels, annotations } = metadata;
  const applied = { ...body, ...more, metadata: { name: named, namespace, labels, annotations } };
  await harness.server.apply(type, applied, { fieldManager: 'argo' });
}

function managersOf(harness: Harness, type: ResourceType, name: string, field: string): readonly string[] {
  return managedFieldsOf(harness.live(type, name))
    .filter(({ fieldsV1 }) => JSON.stringify(fieldsV1).includes(`"f:${field}"`))
    .map(({ manager }) => manager);
}

describe('a field that is no longer rendered, and that another manager owns too', () => {
  it('is removed; what the other manager owns besides stays', async () => {
    const harness = await reconciled(CronTab, 'c', cron);
    await applyAsIs(harness, CronJob, 'c', { spec: { ...(harness.live(CronJob, 'c').spec as object), suspend: true } });
    await harness.reconcile('c');
    harness.respec('c', { timeZone: undefined, command: undefined });
    expect((await harness.reconcile('c')).writes).toEqual([
      'PATCH CronJob c (kindred)',
      'APPLY CronJob c (kindred)',
      'APPLY CronTab c/status (kindred)',
    ]);
    const live = harness.live(CronJob, 'c');
    expect(live.spec).not.toHaveProperty('timeZone');
    expect(live).not.toHaveProperty('spec.jobTemplate.spec.template.spec.containers[0].command');
    expect(managersOf(harness, CronJob, 'c', 'schedule')).toEqual(expect.arrayContaining(['argo', 'kindred']));
    expect((await harness.reconcile('c')).writes).toEqual([]);
  });

  it('is removed by the next attempt when the operator ends before its apply', async () => {
    const harness = await reconciled(CronTab, 'c', cron);
    await applyAsIs(harness, CronJob, 'c');
    harness.respec('c', { timeZone: undefined });
    harness.server.before = ({ verb, type }) => {
      if (verb === 'APPLY' && type === CronJob) throw apiError(500, 'InternalError', 'ends');
    };
    await harness.reconcile('c');
    expect(harness.live(CronJob, 'c').spec).toHaveProperty('timeZone');
    harness.server.before = () => undefined;
    await harness.reconcile('c');
    expect(harness.live(CronJob, 'c').spec).not.toHaveProperty('timeZone');
  });

  it('is not taken from a manager who has changed the child meanwhile: the child is read again first', async () => {
    const harness = await reconciled(CronTab, 'c', cron);
    await applyAsIs(harness, CronJob, 'c');
    harness.respec('c', { timeZone: undefined });
    harness.server.before = ({ verb, type }) => {
      if (verb !== 'APPLY' || type !== CronJob) return;
      harness.server.before = () => undefined;
      harness.server.edit(CronJob, ref('c'), (live) => ({
        ...live,
        spec: { ...(live.spec as object), suspend: true },
      }));
    };
    await expect(reconcileObject(harness.context, ref('c'))).rejects.toMatchObject({ reason: 'Conflict' });
    await harness.reconcile('c');
    expect(harness.live(CronJob, 'c').spec).not.toHaveProperty('timeZone');
  });

  it('is contested when the other manager writes it again: the third time in a minute, Ready names the manager', async () => {
    const harness = await reconciled(CronTab, 'c', cron);
    const manifest = harness.live(CronJob, 'c');
    await applyAsIs(harness, CronJob, 'c');
    harness.respec('c', { timeZone: undefined });
    await harness.reconcile('c');
    for (let i = 0; i < 3; i++) {
      expect(harness.live(CronJob, 'c').spec).not.toHaveProperty('timeZone');
      await applyAsIs(harness, CronJob, 'c', { spec: manifest.spec });
      expect(harness.live(CronJob, 'c').spec).toHaveProperty('timeZone');
      await harness.reconcile('c');
      expect(harness.written.at(-1)).toMatchObject({ action: 'applied' });
    }
    expect(harness.conditions('c')[0]).toBe('Ready=False ErrContested');
    expect(harness.message('c')).toContain('is changed by "argo" as often as it is corrected');
  });

  it('is removed again though a conflict interrupted that', async () => {
    const harness = await reconciled(CronTab, 'c', cron);
    const manifest = harness.live(CronJob, 'c');
    await applyAsIs(harness, CronJob, 'c');
    harness.respec('c', { timeZone: undefined });
    await harness.reconcile('c');
    await applyAsIs(harness, CronJob, 'c', { spec: manifest.spec });
    harness.server.before = ({ verb, type }) => {
      if (verb !== 'APPLY' || type !== CronJob) return;
      harness.server.before = () => undefined;
      harness.server.edit(CronJob, ref('c'), (live) => ({ ...live, status: { active: [] } }));
    };
    await expect(reconcileObject(harness.context, ref('c'))).rejects.toMatchObject({ reason: 'Conflict' });
    await harness.reconcile('c');
    expect(harness.live(CronJob, 'c').spec).not.toHaveProperty('timeZone');
    expect((await harness.reconcile('c')).writes).toEqual([]);
  });

  it('belongs to the operator again when it is rendered again', async () => {
    const harness = await reconciled(CronTab, 'c', cron);
    await applyAsIs(harness, CronJob, 'c');
    harness.respec('c', { timeZone: undefined });
    await harness.reconcile('c');
    harness.respec('c', { timeZone: 'Asia/Tokyo' });
    await harness.reconcile('c');
    expect(harness.live(CronJob, 'c').spec).toHaveProperty('timeZone', 'Asia/Tokyo');
    expect((await harness.reconcile('c')).writes).toEqual([]);
  });

  it('stays when the kind hands it over: the replicas while autoscaling is on', async () => {
    const harness = await reconciled(MicroServiceDeploy, 'm', { ...shop, replicas: 3 });
    await applyAsIs(harness, Deployment, 'shop-1');
    harness.respec('m', { autoscaling: true });
    await harness.reconcile('m');
    expect(harness.live(Deployment, 'shop-1').spec).toHaveProperty('replicas', 3);
    expect(harness.server.peek(HorizontalPodAutoscaler, ref('shop-1'))).toBeDefined();
    harness.server.edit(
      Deployment,
      ref('shop-1'),
      (live) => ({ ...live, spec: { ...(live.spec as object), replicas: 7 } }),
      'autoscaler',
    );
    harness.respec('m', { image: 'j' });
    await harness.reconcile('m');
    expect(harness.live(Deployment, 'shop-1').spec).toHaveProperty('replicas', 7);
  });
});

/** A seeded field that the rendering leaves out while the other writer is there. */
it('a seeded field that is not rendered at all stays with its other manager, and is not contested', async () => {
  const kind = {
    ...MicroServiceDeploy,
    children: (scope, self) => {
      MicroServiceDeploy.children(scope, self as never);
      for (const one of scope.node.findAll())
        if (one instanceof ApiObject && one.kind === 'Deployment') one.addJsonPatch(JsonPatch.remove('/spec/replicas'));
    },
  } as AnyKind;
  const harness = await reconciled(kind, 'm', { ...shop, autoscaling: true });
  harness.server.edit(Deployment, ref('shop-1'), (live) => ({
    ...live,
    spec: { ...(live.spec as object), replicas: 7 },
  }));
  await applyAsIs(harness, Deployment, 'shop-1');
  for (const image of ['j', 'k']) {
    harness.respec('m', { image });
    await harness.reconcile('m');
    expect(harness.live(Deployment, 'shop-1').spec).toHaveProperty('replicas', 7);
    expect((await harness.reconcile('m')).writes).toEqual([]);
  }
});

describe('an adopted child', () => {
  /** An object that a restore has brought back, and that somebody has agreed to hand over. */
  async function restored(): Promise<Harness> {
    const harness = await reconciled(CronTab, 'c', cron);
    const { metadata, spec, apiVersion, kind } = harness.live(CronJob, 'c');
    await harness.server.delete(CronJob, ref('c'));
    const { 'kindred.dev/owner-uid': _, ...annotations } = metadata.annotations ?? {};
    const body = {
      ...{ apiVersion, kind, spec: { ...(spec as object), startingDeadlineSeconds: 60 } },
      metadata: {
        name: 'c',
        namespace: metadata.namespace,
        annotations: { ...annotations, 'kindred.dev/adopt': 'true' },
      },
    };
    await harness.server.create(CronJob, body, { fieldManager: 'velero-server' });
    return harness;
  }

  async function adopted(): Promise<Harness> {
    const harness = await restored();
    await harness.reconcile('c');
    expect(harness.live(CronJob, 'c').metadata.ownerReferences).toHaveLength(1);
    return harness;
  }

  it('is taken from the managers who wrote what is rendered; what is not rendered stays with them', async () => {
    const harness = await adopted();
    expect(managersOf(harness, CronJob, 'c', 'schedule')).toEqual(['kindred']);
    expect(managersOf(harness, CronJob, 'c', 'startingDeadlineSeconds')).toEqual(['velero-server']);
    expect(harness.live(CronJob, 'c').spec).toHaveProperty('startingDeadlineSeconds', 60);
  });

  it('loses what is no longer rendered, even if the operator ended before its first apply', async () => {
    const harness = await restored();
    harness.server.before = ({ verb, type }) => {
      if (verb === 'APPLY' && type === CronJob) throw apiError(500, 'InternalError', 'ends');
    };
    await harness.reconcile('c');
    expect(harness.live(CronJob, 'c').metadata.ownerReferences).toBeUndefined();
    harness.server.before = () => undefined;
    harness.respec('c', { timeZone: undefined });
    await harness.reconcile('c');
    expect(harness.live(CronJob, 'c').metadata.ownerReferences).toHaveLength(1);
    expect(harness.live(CronJob, 'c').spec).not.toHaveProperty('timeZone');
    expect(harness.live(CronJob, 'c').spec).toHaveProperty('startingDeadlineSeconds', 60);
  });

  it('loses what is no longer rendered', async () => {
    const harness = await adopted();
    harness.respec('c', { timeZone: undefined, command: undefined });
    await harness.reconcile('c');
    expect(harness.live(CronJob, 'c').spec).not.toHaveProperty('timeZone');
    expect(harness.live(CronJob, 'c')).not.toHaveProperty('spec.jobTemplate.spec.template.spec.containers[0].command');
  });
});

test('an owner that leaves a shared child is removed from it, even if another client owns the reference too', async () => {
  const harness = await reconciled(MicroServiceDeploy, 'one', shop);
  await harness.add('two', { ...shop, fullName: 'shop-2' });
  await harness.reconcileShared('shop');
  const live = harness.live(Service, 'shop');
  const { ownerReferences } = live.metadata;
  expect(ownerReferences).toHaveLength(2);
  const body = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'shop', namespace: live.metadata.namespace, ownerReferences },
  };
  await harness.server.apply(Service, body, { fieldManager: 'argo' });
  harness.server.remove(MicroServiceDeploy.type, ref('two'));
  await harness.reconcileShared('shop');
  expect(harness.live(Service, 'shop').metadata.ownerReferences?.map(({ name }) => name)).toEqual(['one']);
  expect((await harness.reconcileShared('shop')).writes).toEqual([]);
});
