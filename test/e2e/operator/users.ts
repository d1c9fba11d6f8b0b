import { crdManifest } from '../../../constructs/crd';
import type { CommonStatus } from '../../../constructs/kind/kind';
import { CronTab, DemoMicroService, HelloApp } from '../../../constructs/kinds';
import { PAUSED_ANNOTATION, RECONCILE_AT_ANNOTATION } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import {
  waitForChildren,
  findCondition,
  waitForEvent,
  expectChildren,
  hasCondition,
  waitUntilIdle,
  isReadyNow,
} from '../../support/assertions';
import type { TestEnv } from '../../support/test-env';

const QUOTAS: ResourceType = { apiVersion: 'v1', kind: 'ResourceQuota', plural: 'resourcequotas', scope: 'Namespaced' };

/** What people tell the operator, and what it tells them, on a real API server. */
export function peopleTests(bench: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await bench.namespace('people');
  });
  const annotate = (name: string, annotations: Readonly<Record<string, string | null>>): Promise<KubeObject> =>
    bench.patch(HelloApp.type, { namespace, name }, { metadata: { annotations } });

  test('a paused object is left as it is, says so, and catches up', async () => {
    const ref = { namespace, name: 'paused' };
    await bench.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await annotate('paused', { [PAUSED_ANNOTATION]: 'true' });
    await bench.patchSpec(HelloApp, ref, { image: 'nginx:2', size: 2 });
    const paused = await bench.waitUntil(HelloApp.type, ref, 'paused', (object) =>
      hasCondition(object, 'Ready', 'Unknown'),
    );
    expect(findCondition(paused, 'Ready')).toMatchObject({ reason: 'Paused' });
    expect(findCondition(paused, 'Ready')?.message).toContain(PAUSED_ANNOTATION);
    expect((await bench.get(owned.Deployment, ref)).spec?.replicas).toBe(1);

    await annotate('paused', { [PAUSED_ANNOTATION]: null });
    await expectChildren(bench, HelloApp, await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow));
  });

  test('a changed reconcile-at forces a reconcile, which writes nothing where nothing differs', async () => {
    const ref = { namespace, name: 'forced' };
    await bench.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await waitUntilIdle(bench, bench.operator);
    const reconciles = async (): Promise<number> =>
      (await bench.operator.metrics()).sum('controller_runtime_reconcile_total', { controller: HelloApp.crdName });
    const before = await reconciles();
    const writes = (await bench.auditLog()).writes().length;
    await annotate('forced', { [RECONCILE_AT_ANNOTATION]: 'now' });
    await bench.eventually('one more reconcile', async () => ((await reconciles()) > before ? true : undefined));
    await waitUntilIdle(bench, bench.operator);
    expect((await bench.auditLog()).writes().slice(writes)).toEqual([]);
  });

  test.each([
    ['DemoMicroService', 'background', DemoMicroService],
    ['HelloApp', 'foreground', HelloApp],
  ] as const)('a %s that is being deleted (%s) says for whose finalizer it waits', async (_, cascade, kind) => {
    const ref = { namespace, name: `going-${cascade}` };
    await bench.createOfKind(kind, ref, { image: 'nginx:1' });
    await bench.waitUntil(kind.type, ref, 'Ready', isReadyNow);
    await bench.patch(owned.Deployment, ref, { metadata: { finalizers: ['example.com/hold'] } });
    const deletion = ['delete', `${kind.plural}.${kind.group}/${ref.name}`, '-n', namespace, '--wait=false'];
    expect(await bench.kubectl([...deletion, `--cascade=${cascade}`])).toMatchObject({ code: 0 });
    const waits = `Deployment "${ref.name}", which its finalizers hold: example.com/hold`;
    const going = await bench.waitUntil(kind.type, ref, 'waiting', (object) =>
      (findCondition(object, 'Ready')?.message ?? '').includes(waits),
    );
    expect(findCondition(going, 'Ready')).toMatchObject({ status: 'False', reason: 'Terminating' });
    await bench.patch(owned.Deployment, ref, { metadata: { finalizers: null } });
    await bench.waitUntilGone(kind.type, ref);
  });

  test("a child that the server refuses shows the server's words, until the spec is mended", async () => {
    const ref = { namespace, name: 'invalid' };
    // It looks like a time zone, so the schema lets it pass; whether there is one of that name only the server knows.
    await bench.createOfKind(CronTab, ref, { cronSpec: '@daily', image: 'busybox:1', timeZone: 'Nowhere/Land' });
    const refused = await bench.waitUntil(CronTab.type, ref, 'Stalled', (object) =>
      hasCondition(object, 'Stalled', 'True'),
    );
    const words = 'spec.timeZone: Invalid value: "Nowhere/Land"';
    expect(findCondition(refused, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrInvalidChild' });
    expect(findCondition(refused, 'Ready')?.message).toContain(words);
    expect(findCondition(refused, 'Stalled')?.message).toContain(words);
    expect((await waitForEvent(bench, refused, 'ErrInvalidChild')).note).toContain(words);

    await bench.patchSpec(CronTab, ref, { timeZone: 'Asia/Tokyo' });
    const mended = await bench.waitUntil(CronTab.type, ref, 'Ready', isReadyNow);
    expect(findCondition(mended, 'Stalled')).toBeUndefined();
    await waitForChildren(bench, CronTab, mended);
  });

  test('conditions and fields of ours that a restored status has brought along go, and those of others stay', async () => {
    const ref = { namespace, name: 'restored' };
    await bench.createOfKind(CronTab, ref, { cronSpec: '@daily', image: 'busybox:1' });
    const before = await bench.waitUntil(CronTab.type, ref, 'Ready', isReadyNow);
    const conditions = (before.status as CommonStatus).conditions ?? [];
    const more = ['Stalled', 'Reconciling', 'Restored'].map((type) => ({
      ...{ type, status: 'True', reason: 'Backup', message: 'as it was', lastTransitionTime: '2026-01-01T00:00:00Z' },
    }));
    const status = { lastScheduleTime: '2026-01-01T00:00:00Z', conditions: [...conditions, ...more] };
    await bench.client.patch(
      CronTab.type,
      ref,
      { status },
      {
        ...{ type: 'merge', fieldManager: 'restore', subresource: 'status' },
      },
    );
    const after = await bench.waitUntil(CronTab.type, ref, 'without them', (object) => {
      const { lastScheduleTime } = object.status as { lastScheduleTime?: string };
      return findCondition(object, 'Stalled') === undefined && lastScheduleTime === undefined;
    });
    expect(findCondition(after, 'Reconciling')).toBeUndefined();
    expect(findCondition(after, 'Restored')).toMatchObject({ reason: 'Backup' });
    expect(findCondition(after, 'Ready')).toEqual(findCondition(before, 'Ready'));
  });

  test('what keeps pods from being made shows in Ready', async () => {
    const ref = { namespace, name: 'no-pods' };
    await bench.createOfKind(HelloApp, ref, { image: ' nginx' });
    await bench.waitUntil(HelloApp.type, ref, "saying so in the server's words", (object) => {
      return findCondition(object, 'Ready')?.message.includes('must not have leading or trailing whitespace') === true;
    });
  });

  test.each([['pods'], ['count/replicasets.apps']])('a quota on %s that is used up shows in Ready', async (what) => {
    const crowded = await bench.namespace('crowded');
    const quota = { namespace: crowded, name: 'none' };
    await bench.create(QUOTAS, quota, { spec: { hard: { [what]: '0' } } });
    await bench.waitUntil(QUOTAS, quota, 'in force', ({ status }) => {
      return (status as { hard?: object } | undefined)?.hard !== undefined;
    });
    const ref = { namespace: crowded, name: 'hungry' };
    await bench.createOfKind(HelloApp, ref, { image: 'nginx' });
    const starved = await bench.waitUntil(HelloApp.type, ref, 'starved', (object) => {
      return findCondition(object, 'Ready')?.message.includes('exceeded quota: none') === true;
    });
    expect(hasCondition(starved, 'Ready', 'False')).toBe(true);
    expect(hasCondition(starved, 'Reconciling', 'True')).toBe(true);
  });
}

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

/** Objects that an older or looser CRD has let in. */
export function undecodableTests(bench: TestEnv): void {
  test('an object that does not fit the schema says so, and the others go on', async () => {
    const namespace = await bench.namespace('loose');
    const { spec } = crdManifest(HelloApp);
    await bench.patch(CRDS, { name: HelloApp.crdName }, { spec: loosened(spec) as object });
    const bad = { namespace, name: 'bad' };
    await bench.eventually('the looser schema to be in force', () =>
      bench.createOfKind(HelloApp, bad, { image: '' }).catch(() => undefined),
    );
    const stalled = await bench.waitUntil(HelloApp.type, bad, 'Stalled', (object) =>
      hasCondition(object, 'Stalled', 'True'),
    );
    expect(findCondition(stalled, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrInvalidSpec' });
    expect(findCondition(stalled, 'Ready')?.message).toContain('spec.image');

    const good = { namespace, name: 'good' };
    await bench.createOfKind(HelloApp, good, { image: 'nginx:1' });
    await bench.waitUntil(HelloApp.type, good, 'Ready', isReadyNow);
    await bench.patchSpec(HelloApp, bad, { image: 'nginx:1' });
    await bench.waitUntil(HelloApp.type, bad, 'Ready', isReadyNow);
    await bench.patch(CRDS, { name: HelloApp.crdName }, { spec: spec as object });
  });
}

/** The same without lower bounds of strings. */
function loosened(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === 'minLength' ? undefined : value)));
}
