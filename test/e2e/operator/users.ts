import { crdManifest } from '../../../constructs/crd';
import type { CommonStatus } from '../../../constructs/kind/kind';
import { CronTab, DemoMicroService, HelloApp } from '../../../constructs/kinds';
import { PAUSED_ANNOTATION, RECONCILE_AT_ANNOTATION } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { childrenStand, condition, eventAbout, expectChildren, is, quiet, ready } from '../../support/assertions';
import type { Bench } from '../../support/test-env';

const QUOTAS: ResourceType = { apiVersion: 'v1', kind: 'ResourceQuota', plural: 'resourcequotas', scope: 'Namespaced' };

/** What people tell the operator, and what it tells them, on a real API server. */
export function peopleTests(bench: Bench): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await bench.namespace('people');
  });
  const annotate = (name: string, annotations: Readonly<Record<string, string | null>>): Promise<KubeObject> =>
    bench.patch(HelloApp.type, { namespace, name }, { metadata: { annotations } });

  test('a paused object is left as it is, says so, and catches up', async () => {
    const ref = { namespace, name: 'paused' };
    await bench.make(HelloApp, ref, { image: 'nginx:1' });
    await bench.until(HelloApp.type, ref, 'Ready', ready);
    await annotate('paused', { [PAUSED_ANNOTATION]: 'true' });
    await bench.respec(HelloApp, ref, { image: 'nginx:2', size: 2 });
    const paused = await bench.until(HelloApp.type, ref, 'paused', (object) => is(object, 'Ready', 'Unknown'));
    expect(condition(paused, 'Ready')).toMatchObject({ reason: 'Paused' });
    expect(condition(paused, 'Ready')?.message).toContain(PAUSED_ANNOTATION);
    expect((await bench.get(owned.Deployment, ref)).spec?.replicas).toBe(1);

    await annotate('paused', { [PAUSED_ANNOTATION]: null });
    await expectChildren(bench, HelloApp, await bench.until(HelloApp.type, ref, 'Ready', ready));
  });

  test('a changed reconcile-at forces a reconcile, which writes nothing where nothing differs', async () => {
    const ref = { namespace, name: 'forced' };
    await bench.make(HelloApp, ref, { image: 'nginx:1' });
    await bench.until(HelloApp.type, ref, 'Ready', ready);
    await quiet(bench, bench.operator);
    const reconciles = async (): Promise<number> =>
      (await bench.operator.metrics()).sum('controller_runtime_reconcile_total', { controller: HelloApp.crdName });
    const before = await reconciles();
    const writes = (await bench.audit()).writes().length;
    await annotate('forced', { [RECONCILE_AT_ANNOTATION]: 'now' });
    await bench.eventually('one more reconcile', async () => ((await reconciles()) > before ? true : undefined));
    await quiet(bench, bench.operator);
    expect((await bench.audit()).writes().slice(writes)).toEqual([]);
  });

  test.each([
    ['DemoMicroService', 'background', DemoMicroService],
    ['HelloApp', 'foreground', HelloApp],
  ] as const)('a %s that is being deleted (%s) says for whose finalizer it waits', async (_, cascade, kind) => {
    const ref = { namespace, name: `going-${cascade}` };
    await bench.make(kind, ref, { image: 'nginx:1' });
    await bench.until(kind.type, ref, 'Ready', ready);
    await bench.patch(owned.Deployment, ref, { metadata: { finalizers: ['example.com/hold'] } });
    const deletion = ['delete', `${kind.plural}.${kind.group}/${ref.name}`, '-n', namespace, '--wait=false'];
    expect(await bench.kubectl([...deletion, `--cascade=${cascade}`])).toMatchObject({ code: 0 });
    const waits = `Deployment "${ref.name}", which its finalizers hold: example.com/hold`;
    const going = await bench.until(kind.type, ref, 'waiting', (object) =>
      (condition(object, 'Ready')?.message ?? '').includes(waits),
    );
    expect(condition(going, 'Ready')).toMatchObject({ status: 'False', reason: 'Terminating' });
    await bench.patch(owned.Deployment, ref, { metadata: { finalizers: null } });
    await bench.gone(kind.type, ref);
  });

  test("a child that the server refuses shows the server's words, until the spec is mended", async () => {
    const ref = { namespace, name: 'invalid' };
    // It looks like a time zone, so the schema lets it pass; whether there is one of that name only the server knows.
    await bench.make(CronTab, ref, { cronSpec: '@daily', image: 'busybox:1', timeZone: 'Nowhere/Land' });
    const refused = await bench.until(CronTab.type, ref, 'Stalled', (object) => is(object, 'Stalled', 'True'));
    const words = 'spec.timeZone: Invalid value: "Nowhere/Land"';
    expect(condition(refused, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrInvalidChild' });
    expect(condition(refused, 'Ready')?.message).toContain(words);
    expect(condition(refused, 'Stalled')?.message).toContain(words);
    expect((await eventAbout(bench, refused, 'ErrInvalidChild')).note).toContain(words);

    await bench.respec(CronTab, ref, { timeZone: 'Asia/Tokyo' });
    const mended = await bench.until(CronTab.type, ref, 'Ready', ready);
    expect(condition(mended, 'Stalled')).toBeUndefined();
    await childrenStand(bench, CronTab, mended);
  });

  test('conditions and fields of ours that a restored status has brought along go, and those of others stay', async () => {
    const ref = { namespace, name: 'restored' };
    await bench.make(CronTab, ref, { cronSpec: '@daily', image: 'busybox:1' });
    const before = await bench.until(CronTab.type, ref, 'Ready', ready);
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
    const after = await bench.until(CronTab.type, ref, 'without them', (object) => {
      const { lastScheduleTime } = object.status as { lastScheduleTime?: string };
      return condition(object, 'Stalled') === undefined && lastScheduleTime === undefined;
    });
    expect(condition(after, 'Reconciling')).toBeUndefined();
    expect(condition(after, 'Restored')).toMatchObject({ reason: 'Backup' });
    expect(condition(after, 'Ready')).toEqual(condition(before, 'Ready'));
  });

  test('what keeps pods from being made shows in Ready', async () => {
    const ref = { namespace, name: 'no-pods' };
    await bench.make(HelloApp, ref, { image: ' nginx' });
    await bench.until(HelloApp.type, ref, "saying so in the server's words", (object) => {
      return condition(object, 'Ready')?.message.includes('must not have leading or trailing whitespace') === true;
    });
  });

  test.each([['pods'], ['count/replicasets.apps']])('a quota on %s that is used up shows in Ready', async (what) => {
    const crowded = await bench.namespace('crowded');
    const quota = { namespace: crowded, name: 'none' };
    await bench.create(QUOTAS, quota, { spec: { hard: { [what]: '0' } } });
    await bench.until(QUOTAS, quota, 'in force', ({ status }) => {
      return (status as { hard?: object } | undefined)?.hard !== undefined;
    });
    const ref = { namespace: crowded, name: 'hungry' };
    await bench.make(HelloApp, ref, { image: 'nginx' });
    const starved = await bench.until(HelloApp.type, ref, 'starved', (object) => {
      return condition(object, 'Ready')?.message.includes('exceeded quota: none') === true;
    });
    expect(is(starved, 'Ready', 'False')).toBe(true);
    expect(is(starved, 'Reconciling', 'True')).toBe(true);
  });
}

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

/** Objects that an older or looser CRD has let in. */
export function undecodableTests(bench: Bench): void {
  test('an object that does not fit the schema says so, and the others go on', async () => {
    const namespace = await bench.namespace('loose');
    const { spec } = crdManifest(HelloApp);
    await bench.patch(CRDS, { name: HelloApp.crdName }, { spec: loosened(spec) as object });
    const bad = { namespace, name: 'bad' };
    await bench.eventually('the looser schema to be in force', () =>
      bench.make(HelloApp, bad, { image: '' }).catch(() => undefined),
    );
    const stalled = await bench.until(HelloApp.type, bad, 'Stalled', (object) => is(object, 'Stalled', 'True'));
    expect(condition(stalled, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrInvalidSpec' });
    expect(condition(stalled, 'Ready')?.message).toContain('spec.image');

    const good = { namespace, name: 'good' };
    await bench.make(HelloApp, good, { image: 'nginx:1' });
    await bench.until(HelloApp.type, good, 'Ready', ready);
    await bench.respec(HelloApp, bad, { image: 'nginx:1' });
    await bench.until(HelloApp.type, bad, 'Ready', ready);
    await bench.patch(CRDS, { name: HelloApp.crdName }, { spec: spec as object });
  });
}

/** The same without lower bounds of strings. */
function loosened(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === 'minLength' ? undefined : value)));
}
