import { HelloApp } from '../../../constructs/kinds';
import { isReadyNow } from '../../support/assertions';
import { useTestEnv } from '../../support/test-env';
import { when } from '../../../testing/fault-proxy/fault-proxy';

const env = useTestEnv({ proxy: true, operator: false });

test('without a fault nothing differs, and what was asked is told; an operator killed before a write leaves it to the next', async () => {
  await env.start();
  await env.operator.waitUntilReconciling();
  const namespace = await env.namespace();
  const ref = { namespace, name: 'app' };
  await env.createOfKind(HelloApp, ref, { image: 'nginx:1' });
  await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
  expect(env.proxy.writes()[0]).toMatchObject({ verb: 'create', resource: 'deployments.apps', namespace });

  expect(env.proxy.faultedRequests()).toEqual([]);

  let held = 0;
  env.proxy.fault = when(
    ({ writes, isBackground }) => writes && !isBackground,
    (exchange) => {
      held += 1;
      return exchange.hang();
    },
  );
  await env.patchSpec(HelloApp, ref, { image: 'nginx:2' });
  await env.eventually('a write that is held', () => Promise.resolve(held > 0 ? true : undefined));
  expect(env.proxy.faultedRequests().every(({ writes }) => writes)).toBe(true);
  expect(env.proxy.faultedRequests()).toHaveLength(held);
  env.clearFaults();
  await env.crashAndRestart();
  await env.waitUntil(HelloApp.type, ref, 'Ready', (object) => isReadyNow(object));
});
