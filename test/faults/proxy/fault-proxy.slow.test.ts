import { HelloApp } from '../../../constructs/kinds';
import { ready } from '../../support/assertions';
import { useFaultBench } from '../../support/test-env';
import { when } from '../../../testing/fault-proxy/fault-proxy';

const bench = useFaultBench();

test('without a fault nothing differs, and what was asked is told; an operator killed before a write leaves it to the next', async () => {
  await bench.start();
  await bench.operator.working();
  const namespace = await bench.namespace();
  const ref = { namespace, name: 'app' };
  await bench.make(HelloApp, ref, { image: 'nginx:1' });
  await bench.until(HelloApp.type, ref, 'Ready', ready);
  expect(bench.proxy.writes()[0]).toMatchObject({ verb: 'create', resource: 'deployments.apps', namespace });

  expect(bench.proxy.hits()).toEqual([]);

  let held = 0;
  bench.proxy.fault = when(
    ({ writes, beside }) => writes && !beside,
    (exchange) => {
      held += 1;
      return exchange.silence();
    },
  );
  await bench.respec(HelloApp, ref, { image: 'nginx:2' });
  await bench.eventually('a write that is held', () => Promise.resolve(held > 0 ? true : undefined));
  expect(bench.proxy.hits().every(({ writes }) => writes)).toBe(true);
  expect(bench.proxy.hits()).toHaveLength(held);
  bench.heal();
  await bench.crash();
  await bench.until(HelloApp.type, ref, 'Ready', (object) => ready(object));
});
