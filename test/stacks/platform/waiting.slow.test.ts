import { ObservedCluster } from '../memory-cluster';
import { program } from './small-platform';

// The gate keeps the others: waiting.test.ts.

describe('monitoring without the Prometheus operator', () => {
  const both = ['podmonitors.monitoring.coreos.com', 'prometheusrules.monitoring.coreos.com'];

  test('is switched on and off where it stands; only what is used is asked for', async () => {
    const { engine, done } = new ObservedCluster({ crds: both });
    await engine.up(program());
    const on = await engine.up(program({ monitoring: {} }));
    expect(on.summary).toHaveLength(2);
    expect(done).toEqual(expect.arrayContaining(['create kindred/operators/operator/monitoring/pod-monitor']));
    expect((await engine.up(program({ monitoring: {} }))).summary).toEqual([]);
    const off = await engine.up(program());
    expect(off.summary.map((line) => line.replace(/ .*\//, ' '))).toEqual([
      'delete pod-monitor',
      'delete prometheus-rule',
    ]);
    expect((await engine.up(program())).summary).toEqual([]);

    const { engine: other } = new ObservedCluster({ crds: [both[0]!] });
    await other.up(program({ monitoring: { prometheusRule: false } }));
  });
});
