import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import { waitUntilIdle, isReadyNow } from '../../support/assertions';
import { useTestEnv } from '../../support/test-env';
import { noFault } from '../../../testing/fault-proxy/fault-proxy';
import { dropEvent } from '../../../testing/fault-proxy/faults';
import {
  ErrorLog,
  expectNoMissedEvents,
  missedEventsMessage,
  startWithConsistencyChecks,
} from '../support/steady-state';

jest.setTimeout(240_000);

const env = useTestEnv({ proxy: true, operator: false });

const helloApps = { type: 'apps.anupam.com/v1/HelloApp' };

/** Without pods nothing but the operator writes about it, and no later event makes good the one that is lost. */
const spec = { image: 'nginx:1', size: 0 };

test('an event that a watch never told is found missing, named, and made good', async () => {
  const namespace = await env.namespace();
  const ref = { namespace, name: 'unheard' };
  const other = { namespace, name: 'other' };
  env.proxy.fault = dropEvent(({ object }) => {
    const { image } = (object['spec'] ?? {}) as { readonly image?: string };
    return object.kind === 'HelloApp' && object.metadata.name === ref.name && image === 'nginx:2';
  });
  await startWithConsistencyChecks(env);
  const { operator, proxy } = env;
  for (const each of [ref, other]) {
    await env.createOfKind(HelloApp, each, spec);
    await env.waitUntil(HelloApp.type, each, 'Ready', isReadyNow);
  }
  await waitUntilIdle(env, operator);
  await expectNoMissedEvents(proxy, operator);

  await env.patchSpec(HelloApp, ref, { image: 'nginx:2' });
  await env.eventually('the event to be lost', () =>
    Promise.resolve(proxy.faultedRequests().length > 0 ? true : undefined),
  );
  proxy.fault = noFault;
  let size = 0;
  const found = await env.eventually('it to be found missing', async () => {
    // What the watch tells later, of another object, proves that the event is missing and not late; else a bookmark would, in a minute.
    await env.patchSpec(HelloApp, other, { size: (size = 1 - size) });
    const metrics = await operator.metrics();
    return metrics.sum('kindred_missed_events_total') > 0 ? metrics : undefined;
  });
  expect(proxy.faultedRequests().map(({ verb, resource }) => `${verb} ${resource}`)).toEqual([
    `watch ${HelloApp.crdName}`,
  ]);
  expect(found.sum('kindred_missed_events_total', helloApps)).toBe(1);
  expect(found.sum('kindred_audits_total', { ...helloApps, outcome: 'missed' })).toBe(1);

  await env.waitUntil(owned.Deployment, ref, 'the new image', (live) => JSON.stringify(live).includes('nginx:2'));
  await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
  const told = operator.log.errors().filter(({ msg }) => msg.startsWith(missedEventsMessage));
  expect(told).toEqual([expect.objectContaining({ ...helloApps, missed: 1, some: [`${namespace}/${ref.name}`] })]);
  const agreed = found.sum('kindred_audits_total', { ...helloApps, outcome: 'agrees' });
  const after = await env.eventually('the cache to agree with the server again', async () => {
    const metrics = await operator.metrics();
    return metrics.sum('kindred_audits_total', { ...helloApps, outcome: 'agrees' }) > agreed + 1 ? metrics : undefined;
  });
  expect(after.sum('kindred_missed_events_total')).toBe(1);

  // Every other test that looks for missed events would have told.
  await expect(expectNoMissedEvents(proxy, operator)).rejects.toThrow(/"missed": 1/);
  const logged = new ErrorLog();
  logged.follow(operator);
  expect(() => logged.expectNoBug()).toThrow(missedEventsMessage);
});
