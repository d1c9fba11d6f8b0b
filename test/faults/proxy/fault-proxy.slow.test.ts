import { HelloApp } from '../../../constructs/kinds';
import { isReadyNow } from '../../support/assertions';
import { useTestEnv } from '../../support/test-env';
import { when } from '../../../testing/fault-proxy/fault-proxy';

const bench = useTestEnv({ proxy: true, operator: false });

test('without a fault nothing differs, and what was asked is told; an operator killed before a write leaves it to the next', async () => {
  await bench.start();
  await bench.operator.waitUntilReconciling();
  const namespace = await bench.namespace();
  const ref = { namespace, name: 'app' };
  await bench.createOfKind(HelloApp, ref, { image: 'nginx:1' });
  await bench.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow);
  expect(bench.proxy.writes()[0]).toMatchObject({ verb: 'create', resource: 'deployments.apps', namespace });

  expect(bench.proxy.faultedRequests()).toEqual([]);

  let held = 0;
  bench.proxy.fault = when(
    ({ writes, beside }) => writes && !beside,
    (exchange) => {
      held += 1;
      return exchange.hang();
    },
  );
  await bench.patchSpec(HelloApp, ref, { image: 'nginx:2' });
  await bench.eventually('a write that is held', () => Promise.resolve(held > 0 ? true : undefined));
  expect(bench.proxy.faultedRequests().every(({ writes }) => writes)).toBe(true);
  expect(bench.proxy.faultedRequests()).toHaveLength(held);
  bench.clearFaults();
  await bench.crashAndRestart();
  await bench.waitUntil(HelloApp.type, ref, 'Ready', (object) => isReadyNow(object));
});
