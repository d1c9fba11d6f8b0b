import { Metrics } from '../../testing';
import { OperatorMetrics } from '../../operator/metrics/operator-metrics';

const text = `# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{code="200",method="GET"} 3
requests_total{code="500",method="GET"} 1
requests_total{code="200",method="PUT"} 4

# TYPE missed_total counter
# TYPE seconds histogram
`;

test('a metric is summed over the series that bear the labels', () => {
  const metrics = Metrics.parse(text);
  expect(metrics.sum('requests_total')).toBe(8);
  expect(metrics.sum('requests_total', { code: '200' })).toBe(7);
  expect(metrics.sum('requests_total', { code: '404' })).toBe(0);
});

test('the values of a label are told once each', () => {
  const metrics = Metrics.parse(text);
  expect(metrics.labelValues('requests_total', 'code')).toEqual(['200', '500']);
  expect(metrics.labelValues('requests_total', 'host')).toEqual([]);
});

test('one that has no series yet stands at 0, one that does not exist is an error', () => {
  const metrics = Metrics.parse(text);
  expect([metrics.sum('missed_total'), metrics.sum('seconds_count')]).toEqual([0, 0]);
  expect(() => metrics.sum('missed')).toThrow('/metrics knows no missed');
  expect(() => metrics.sum('missed_total_sum')).toThrow('/metrics knows no missed_total_sum');
});

test('what an operator has missed is there to be read from its first moment, and what it works on', async () => {
  const metrics = Metrics.parse(await new OperatorMetrics({ defaults: false }).render());
  expect(metrics.sum('kindred_missed_events_total')).toBe(0);
  for (const name of ['workqueue_depth', 'controller_runtime_active_workers', 'controller_runtime_reconcile_total'])
    expect(metrics.sum(name)).toBe(0);
});
