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
export function peopleTests(env: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await env.namespace('people');
  });
  const annotate = (name: string, annotations: Readonly<Record<string, string | null>>): Promise<KubeObject> =>
    env.patch(HelloApp.type, { namespace, name }, { metadata: { annotations } });

  test('a paused object is left as it is, says so, and catches up', async () => {
    const ref = { namespace, name: 'paused' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await annotate('paused', { [PAUSED_ANNOTATION]: 'true' });
    await env.patchSpec(HelloApp, ref, { image: 'nginx:2', size: 2 });
    const paused = await env.waitUntil(HelloApp.type, ref, 'paused', (object) =>
      hasCondition(object, 'Ready', 'Unknown'),
    );
    expect(findCondition(paused, 'Ready')).toMatchObject({ reason: 'Paused' });
    expect(findCondition(paused, 'Ready')?.message).toContain(PAUSED_ANNOTATION);
    expect((await env.get(owned.Deployment, ref)).spec?.replicas).toBe(1);

    await annotate('paused', { [PAUSED_ANNOTATION]: null });
    await expectChildren(env, HelloApp, await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow));
  });

  test('a changed reconcile-at forces a reconcile, which writes nothing where nothing differs', async () => {
    const ref = { namespace, name: 'forced' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
    await waitUntilIdle(env, env.operator);
    const reconciles = async (): Promise<number> =>
      (await env.operator.metrics()).sum('controller_runtime_reconcile_total', { controller: HelloApp.crdName });
    const before = await reconciles();
    const writes = (await env.auditLog()).writes().length;
    await annotate('forced', { [RECONCILE_AT_ANNOTATION]: 'now' });
    await env.eventually('one more reconcile', async () => ((await reconciles()) > before ? true : undefined));
    await waitUntilIdle(env, env.operator);
    expect((await env.auditLog()).writes().slice(writes)).toEqual([]);
  });

  test.each([
    ['DemoMicroService', 'background', DemoMicroService],
    ['HelloApp', 'foreground', HelloApp],
  ] as const)('a %s that is being deleted (%s) says for whose finalizer it waits', async (_, cascade, kind) => {
    const ref = { namespace, name: `going-${cascade}` };
    await env.createOfKind(kind, ref, { image: 'nginx:1' });
    await env.waitUntil(kind.type, ref, 'Ready', isReadyNow);
    await env.patch(owned.Deployment, ref, { metadata: { finalizers: ['example.com/hold'] } });
    const deletion = ['delete', `${kind.plural}.${kind.group}/${ref.name}`, '-n', namespace, '--wait=false'];
    expect(await env.kubectl([...deletion, `--cascade=${cascade}`])).toMatchObject({ code: 0 });
    const waits = `Deployment "${ref.name}", which its finalizers hold: example.com/hold`;
    const going = await env.waitUntil(kind.type, ref, 'waiting', (object) =>
      (findCondition(object, 'Ready')?.message ?? '').includes(waits),
    );
    expect(findCondition(going, 'Ready')).toMatchObject({ status: 'False', reason: 'Terminating' });
    await env.patch(owned.Deployment, ref, { metadata: { finalizers: null } });
    await env.waitUntilGone(kind.type, ref);
  });

  test("a child that the server refuses shows the server's words, until the spec is mended", async () => {
    const ref = { namespace, name: 'invalid' };
    await refuseImage(env, namespace, 'forbidden:1');
    await env.createOfKind(CronTab, ref, { cronSpec: '@daily', image: 'forbidden:1' });
    const refused = await env.waitUntil(CronTab.type, ref, 'Stalled', (object) =>
      hasCondition(object, 'Stalled', 'True'),
    );
    const words = 'denied request: no forbidden:1 here';
    expect(findCondition(refused, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrInvalidChild' });
    expect(findCondition(refused, 'Ready')?.message).toContain(words);
    expect(findCondition(refused, 'Stalled')?.message).toContain(words);
    expect((await waitForEvent(env, refused, 'ErrInvalidChild')).note).toContain(words);

    await env.patchSpec(CronTab, ref, { image: 'busybox:1' });
    const mended = await env.waitUntil(CronTab.type, ref, 'Ready', isReadyNow);
    expect(findCondition(mended, 'Stalled')).toBeUndefined();
    await waitForChildren(env, CronTab, mended);
  });

  test('conditions and fields of ours that a restored status has brought along go, and those of others stay', async () => {
    const ref = { namespace, name: 'restored' };
    await env.createOfKind(CronTab, ref, { cronSpec: '@daily', image: 'busybox:1' });
    const before = await env.waitUntil(CronTab.type, ref, 'Ready', isReadyNow);
    const conditions = (before.status as CommonStatus).conditions ?? [];
    const more = ['Stalled', 'Reconciling', 'Restored'].map((type) => ({
      ...{ type, status: 'True', reason: 'Backup', message: 'as it was', lastTransitionTime: '2026-01-01T00:00:00Z' },
    }));
    const status = { lastScheduleTime: '2026-01-01T00:00:00Z', conditions: [...conditions, ...more] };
    await env.client.patch(
      CronTab.type,
      ref,
      { status },
      {
        ...{ type: 'merge', fieldManager: 'restore', subresource: 'status' },
      },
    );
    const after = await env.waitUntil(CronTab.type, ref, 'without them', (object) => {
      const { lastScheduleTime } = object.status as { lastScheduleTime?: string };
      return findCondition(object, 'Stalled') === undefined && lastScheduleTime === undefined;
    });
    expect(findCondition(after, 'Reconciling')).toBeUndefined();
    expect(findCondition(after, 'Restored')).toMatchObject({ reason: 'Backup' });
    expect(findCondition(after, 'Ready')).toEqual(findCondition(before, 'Ready'));
  });

  test('what keeps pods from being made shows in Ready', async () => {
    const ref = { namespace, name: 'no-pods' };
    await env.createOfKind(HelloApp, ref, { image: ' nginx' });
    await env.waitUntil(HelloApp.type, ref, "saying so in the server's words", (object) => {
      return findCondition(object, 'Ready')?.message.includes('must not have leading or trailing whitespace') === true;
    });
  });

  test.each([['pods'], ['count/replicasets.apps']])('a quota on %s that is used up shows in Ready', async (what) => {
    const crowded = await env.namespace('crowded');
    const quota = { namespace: crowded, name: 'none' };
    await env.create(QUOTAS, quota, { spec: { hard: { [what]: '0' } } });
    await env.waitUntil(QUOTAS, quota, 'in force', ({ status }) => {
      return (status as { hard?: object } | undefined)?.hard !== undefined;
    });
    const ref = { namespace: crowded, name: 'hungry' };
    await env.createOfKind(HelloApp, ref, { image: 'nginx' });
    const starved = await env.waitUntil(HelloApp.type, ref, 'starved', (object) => {
      return findCondition(object, 'Ready')?.message.includes('exceeded quota: none') === true;
    });
    expect(hasCondition(starved, 'Ready', 'False')).toBe(true);
    expect(hasCondition(starved, 'Reconciling', 'True')).toBe(true);
  });
}

const policyType = (kind: string, plural: string): ResourceType => ({
  ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind, plural, scope: 'Cluster' },
});

/** Has the API server refuse CronJobs of an image, which no schema can know; returns when that is so. */
async function refuseImage(env: TestEnv, namespace: string, image: string): Promise<void> {
  const policy = { name: 'refuse-image' };
  const rule = { apiGroups: ['batch'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['cronjobs'] };
  const expression = `object.spec.jobTemplate.spec.template.spec.containers.all(c, c.image != '${image}')`;
  await env.create(policyType('ValidatingAdmissionPolicy', 'validatingadmissionpolicies'), policy, {
    spec: { matchConstraints: { resourceRules: [rule] }, validations: [{ expression, message: `no ${image} here` }] },
  });
  await env.create(policyType('ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings'), policy, {
    spec: { policyName: policy.name, validationActions: ['Deny'] },
  });
  const probe = ['create', 'cronjob', 'probe', '-n', namespace, `--image=${image}`, '--schedule=@daily'];
  await env.eventually('the policy to take effect', async () => {
    const { stderr } = await env.kubectl([...probe, '--dry-run=server']);
    return stderr.includes('denied request') ? true : undefined;
  });
}

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

/** Objects that an older or looser CRD has let in. */
export function undecodableTests(env: TestEnv): void {
  test('an object that does not fit the schema says so, and the others go on', async () => {
    const namespace = await env.namespace('loose');
    const { spec } = crdManifest(HelloApp);
    await env.patch(CRDS, { name: HelloApp.crdName }, { spec: loosened(spec) as object });
    const bad = { namespace, name: 'bad' };
    await env.eventually('the looser schema to be in force', () =>
      env.createOfKind(HelloApp, bad, { image: '' }).catch(() => undefined),
    );
    const stalled = await env.waitUntil(HelloApp.type, bad, 'Stalled', (object) =>
      hasCondition(object, 'Stalled', 'True'),
    );
    expect(findCondition(stalled, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrInvalidSpec' });
    expect(findCondition(stalled, 'Ready')?.message).toContain('spec.image');

    const good = { namespace, name: 'good' };
    await env.createOfKind(HelloApp, good, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, good, 'Ready', isReadyNow);
    await env.patchSpec(HelloApp, bad, { image: 'nginx:1' });
    await env.waitUntil(HelloApp.type, bad, 'Ready', isReadyNow);
    await env.patch(CRDS, { name: HelloApp.crdName }, { spec: spec as object });
  });
}

/** The same without lower bounds of strings. */
function loosened(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === 'minLength' ? undefined : value)));
}
