import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Priority, QueueMetrics, UnfinishedWork } from '../workqueue/work-queue';

type Labels = 'name' | 'controller';

/** client-go's buckets for queue and work durations, in seconds: one per decade from 10 ns. */
const durationBuckets = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000];

/** controller-runtime's numbers: an ordinary add has priority 0; the initial list and resyncs have -100. */
const priorityLabels: Readonly<Record<Priority, string>> = { user: '0', resync: '-100' };

/** The `workqueue_*` metrics, labelled `name` and `controller` (both the queue's name); the depth also by `priority`. */
export class QueueMetricsFamily {
  private readonly depth: Gauge<Labels | 'priority'>;
  private readonly adds: Counter<Labels>;
  private readonly retries: Counter<Labels>;
  private readonly queueDuration: Histogram<Labels>;
  private readonly workDuration: Histogram<Labels>;
  private readonly unfinished = new Map<string, () => UnfinishedWork>();

  constructor(private readonly registry: Registry) {
    const registers = [registry];
    const labelNames = ['name', 'controller'] as const;
    this.depth = new Gauge({
      name: 'workqueue_depth',
      help: 'Current depth of workqueue by workqueue and priority',
      labelNames: ['name', 'controller', 'priority'],
      registers,
    });
    this.adds = new Counter({
      name: 'workqueue_adds_total',
      help: 'Total number of adds handled by workqueue',
      labelNames,
      registers,
    });
    this.retries = new Counter({
      name: 'workqueue_retries_total',
      help: 'Total number of retries handled by workqueue',
      labelNames,
      registers,
    });
    this.queueDuration = new Histogram({
      name: 'workqueue_queue_duration_seconds',
      help: 'How long in seconds an item stays in workqueue before being requested',
      labelNames,
      buckets: durationBuckets,
      registers,
    });
    this.workDuration = new Histogram({
      name: 'workqueue_work_duration_seconds',
      help: 'How long in seconds processing an item from workqueue takes.',
      labelNames,
      buckets: durationBuckets,
      registers,
    });
    this.registerUnfinished();
  }

  of(name: string): QueueMetrics {
    const depth = {
      user: this.depth.labels(name, name, priorityLabels.user),
      resync: this.depth.labels(name, name, priorityLabels.resync),
    };
    const adds = this.adds.labels(name, name);
    const retries = this.retries.labels(name, name);
    const queueDuration = this.queueDuration.labels(name, name);
    const workDuration = this.workDuration.labels(name, name);
    depth.user.set(0);
    depth.resync.set(0);
    adds.inc(0);
    retries.inc(0);
    return {
      added(priority) {
        adds.inc();
        depth[priority].inc();
      },
      moved(from, to) {
        depth[from].dec();
        depth[to].inc();
      },
      taken(priority, waitedSeconds) {
        depth[priority].dec();
        queueDuration.observe(waitedSeconds);
      },
      finished: (workedSeconds) => workDuration.observe(workedSeconds),
      retried: () => retries.inc(),
      observeUnfinished: (read) => void this.unfinished.set(name, read),
    };
  }

  private registerUnfinished(): void {
    const readers = this.unfinished;
    const gauge = (name: string, help: string, read: (work: UnfinishedWork) => number): void => {
      new Gauge({
        name,
        help,
        labelNames: ['name', 'controller'] as const,
        registers: [this.registry],
        collect() {
          for (const [queue, unfinished] of readers) this.labels(queue, queue).set(read(unfinished()));
        },
      });
    };
    gauge(
      'workqueue_unfinished_work_seconds',
      'How many seconds of work is in progress and not yet in work_duration. Large values indicate stuck workers.',
      (work) => work.totalSeconds,
    );
    gauge(
      'workqueue_longest_running_processor_seconds',
      'How many seconds the longest running processor of the workqueue has been running.',
      (work) => work.longestSeconds,
    );
  }
}
