import { WorkQueue } from '../../../operator/workqueue/work-queue';
import { OperatorMetrics } from '../../../operator/metrics/operator-metrics';
import { ManualClock } from '../support/manual-clock';

describe('OperatorMetrics', () => {
  it('names everything as controller-runtime does', async () => {
    const metrics = new OperatorMetrics();
    metrics.controller('helloapp');
    const names = (await metrics.registry.getMetricsAsJSON()).map((metric) => metric.name);
    expect(names).toEqual(
      expect.arrayContaining([
        'controller_runtime_reconcile_total',
        'controller_runtime_reconcile_errors_total',
        'controller_runtime_terminal_reconcile_errors_total',
        'controller_runtime_reconcile_time_seconds',
        'controller_runtime_max_concurrent_reconciles',
        'controller_runtime_active_workers',
        'rest_client_requests_total',
        'leader_election_master_status',
        'workqueue_depth',
        'workqueue_adds_total',
        'workqueue_queue_duration_seconds',
        'workqueue_work_duration_seconds',
        'workqueue_unfinished_work_seconds',
        'workqueue_longest_running_processor_seconds',
        'workqueue_retries_total',
        'kindred_missed_events_total',
        'kindred_audits_total',
        'kindred_writes_total',
        'kindred_objects',
        'kindred_events_total',
        'process_cpu_seconds_total',
        'nodejs_eventloop_lag_seconds',
      ]),
    );
  });

  it('counts reconciles by result, and has every series from the start', async () => {
    const metrics = new OperatorMetrics({ defaults: false });
    const controller = metrics.controller('helloapp');
    controller.setMaxConcurrent(32);
    const before = await metrics.render();
    expect(before).toContain('controller_runtime_reconcile_total{controller="helloapp",result="requeue_after"} 0');
    expect(before).toContain('controller_runtime_reconcile_errors_total{controller="helloapp"} 0');
    controller.started();
    controller.started();
    controller.finished('error', 0.004);
    controller.terminalError();
    const text = await metrics.render();
    expect(text).toContain('controller_runtime_reconcile_total{controller="helloapp",result="error"} 1');
    expect(text).toContain('controller_runtime_reconcile_errors_total{controller="helloapp"} 1');
    expect(text).toContain('controller_runtime_terminal_reconcile_errors_total{controller="helloapp"} 1');
    expect(text).toContain('controller_runtime_reconcile_time_seconds_bucket{le="0.005",controller="helloapp"} 1');
    expect(text).toContain('controller_runtime_max_concurrent_reconciles{controller="helloapp"} 32');
    expect(text).toContain('controller_runtime_active_workers{controller="helloapp"} 1');
  });

  it('shows a queue at work', async () => {
    const metrics = new OperatorMetrics({ defaults: false });
    const clock = new ManualClock();
    const queue = new WorkQueue({ clock, metrics: metrics.workqueue('helloapp') });
    queue.add('a', 'resync');
    queue.add('b');
    queue.addAfter('c', 1000);
    queue.take();
    clock.advanceSync(500);
    const text = await metrics.render();
    const labels = 'name="helloapp",controller="helloapp"';
    expect(text).toContain(`workqueue_depth{${labels},priority="0"} 0`);
    expect(text).toContain(`workqueue_depth{${labels},priority="-100"} 1`);
    expect(text).toContain(`workqueue_adds_total{${labels}} 2`);
    expect(text).toContain(`workqueue_retries_total{${labels}} 1`);
    expect(text).toContain(`workqueue_unfinished_work_seconds{${labels}} 0.5`);
    expect(text).toContain(`workqueue_longest_running_processor_seconds{${labels}} 0.5`);
    expect(text).toContain(`workqueue_queue_duration_seconds_count{${labels}} 1`);
    expect(text).toContain(`workqueue_queue_duration_seconds_bucket{le="1e-8",${labels}}`);
  });

  it('has every series of the audits of a type from the start, so that an increase shows', async () => {
    const metrics = new OperatorMetrics({ defaults: false });
    metrics.observeAudits('v1/Service');
    const before = await metrics.render();
    expect(before).toContain('kindred_missed_events_total{type="v1/Service"} 0');
    for (const outcome of ['agrees', 'missed', 'inconclusive', 'failed'])
      expect(before).toContain(`kindred_audits_total{type="v1/Service",outcome="${outcome}"} 0`);
    metrics.audited('v1/Service', 'inconclusive');
    const text = await metrics.render();
    expect(text).toContain('kindred_audits_total{type="v1/Service",outcome="inconclusive"} 1');
    expect(text).toContain('kindred_audits_total{type="v1/Service",outcome="agrees"} 0');
  });

  it('records requests, leadership, writes, missed events, events and objects', async () => {
    const metrics = new OperatorMetrics({ defaults: false });
    metrics.restRequest(200, 'GET', 'api:6443');
    metrics.restRequest('<error>', 'PATCH', 'api:6443');
    metrics.leader('kindred', true);
    metrics.write('apply', 'apps/v1/Deployment');
    metrics.write('apply', 'apps/v1/Deployment');
    metrics.missedEvent('v1/Service', 3);
    metrics.event('dropped_spam');
    metrics.observeObjects('HelloApp', () => 7);
    const text = await metrics.render();
    expect(text).toContain('rest_client_requests_total{code="200",method="GET",host="api:6443"} 1');
    expect(text).toContain('rest_client_requests_total{code="<error>",method="PATCH",host="api:6443"} 1');
    expect(text).toContain('leader_election_master_status{name="kindred"} 1');
    expect(text).toContain('kindred_writes_total{verb="apply",type="apps/v1/Deployment"} 2');
    expect(text).toContain('kindred_missed_events_total{type="v1/Service"} 3');
    expect(text).toContain('kindred_events_total{outcome="dropped_spam"} 1');
    expect(text).toContain('kindred_objects{kind="HelloApp"} 7');
    metrics.leader('kindred', false);
    await expect(metrics.render()).resolves.toContain('leader_election_master_status{name="kindred"} 0');
  });
});
