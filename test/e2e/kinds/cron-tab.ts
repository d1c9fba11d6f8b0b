import { owned } from '../../../constructs/kube/resource-type';
import { CronTab } from '../../../constructs/kinds';
import type { TestEnv } from '../../support/test-env';
import { waitForChildren, findCondition, expectChildren, isReadyNow } from '../../support/assertions';

/** CronTab on a real API server. */
export function cronTabTests(env: TestEnv): void {
  let namespace: string;
  beforeAll(async () => {
    namespace = await env.namespace('cron');
  });

  test('without a spec it is Ready, and nothing is scheduled', async () => {
    const [sample] = CronTab.samples;
    const ref = { namespace, name: sample!.name };
    await env.createOfKind(CronTab, ref);
    const live = await env.waitUntil(CronTab.type, ref, 'Ready', isReadyNow);
    expect(findCondition(live, 'Ready')).toMatchObject({ status: 'True', reason: 'NothingScheduled' });
    expect(await env.client.get(owned.CronJob, ref)).toBeUndefined();
  });

  test('lives from its schedule to its deletion', async () => {
    const ref = { namespace, name: 'nightly' };
    const spec = { cronSpec: '0 3 * * 1-5', image: 'busybox:1', timeZone: 'Europe/Berlin', command: ['sleep', '1'] };
    await env.createOfKind(CronTab, ref, spec);
    await expectChildren(env, CronTab, await env.waitUntil(CronTab.type, ref, 'Ready', isReadyNow));
    const cronJob = await env.get(owned.CronJob, ref);
    expect(cronJob).toMatchObject({
      spec: { schedule: '0 3 * * 1-5', timeZone: 'Europe/Berlin', suspend: false, concurrencyPolicy: 'Forbid' },
    });

    await env.patchSpec(CronTab, ref, { cronSpec: '@hourly', suspend: true, command: null, timeZone: null });
    const changed = await env.waitUntil(CronTab.type, ref, 'Ready', isReadyNow);
    await expectChildren(env, CronTab, changed);
    const after = (await env.get(owned.CronJob, ref)) as { spec?: { timeZone?: string; jobTemplate?: unknown } };
    expect(after.spec?.timeZone).toBeUndefined();
    expect(JSON.stringify(after.spec?.jobTemplate)).not.toContain('"sleep"');

    await env.patch(owned.CronJob, ref, { spec: { schedule: '1 1 * * *' } });
    await waitForChildren(env, CronTab, changed);
    await env.client.delete(owned.CronJob, ref);
    await waitForChildren(env, CronTab, changed);

    await env.patch(CronTab.type, ref, { spec: null });
    const bare = await env.waitUntil(CronTab.type, ref, 'Ready with nothing to do', (object) => {
      return isReadyNow(object) && findCondition(object, 'Ready')?.reason === 'NothingScheduled';
    });
    await env.waitUntilGone(owned.CronJob, ref);
    await expectChildren(env, CronTab, bare);

    await env.patchSpec(CronTab, ref, { cronSpec: '@daily', image: 'busybox:1' });
    await expectChildren(env, CronTab, await env.waitUntil(CronTab.type, ref, 'Ready', isReadyNow));
    await env.deleteAndWait(CronTab.type, ref);
    await env.waitUntilGone(owned.CronJob, ref);
  });

  test.each([
    ['a schedule without an image', 'cronSpec and image go together', { cronSpec: '@daily' }],
    ['a minute that does not exist', 'spec.cronSpec', { cronSpec: '99 * * * *', image: 'a' }],
    ['a range that runs backwards', 'a range must not run backwards', { cronSpec: '0 5-1 * * *', image: 'a' }],
    ['an unknown time zone', 'unknown time zone Foo/Bar', { cronSpec: '@daily', image: 'a', timeZone: 'Foo/Bar' }],
  ])('kubectl refuses %s', async (_, words, spec) => {
    const object = { apiVersion: CronTab.apiVersion, kind: CronTab.kind, metadata: { name: 'bad' }, spec };
    const { code, stderr } = await env.kubectl(['apply', '-n', namespace, '-f', '-'], JSON.stringify(object));
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(words) as string });
  });
}
