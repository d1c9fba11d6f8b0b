import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** The outcome of a reconcile, with controller-runtime's names. */
export type ReconcileOutcome = 'success' | 'error' | 'requeue' | 'requeue_after';

/** The metrics of one controller. */
export interface ControllerMetrics {
  /** How many reconciles may run at once. */
  setMaxConcurrent(count: number): void;
  /** A reconcile began. */
  started(): void;
  /** A `started` reconcile ended; `error` also counts into `controller_runtime_reconcile_errors_total`. */
  finished(result: ReconcileOutcome, seconds: number): void;
  /** The error of a reconcile was terminal. Called in addition to `finished('error', ...)`. */
  terminalError(): void;
}

/**
 * The `controller_runtime_*` metrics. Every series of a controller exists from the start with 0, as in controller-runtime, so that
 * `rate()` sees the first error.
 */
export class ControllerMetricsFamily {
  private readonly total: Counter<'controller' | 'result'>;
  private readonly errors: Counter<'controller'>;
  private readonly terminal: Counter<'controller'>;
  private readonly time: Histogram<'controller'>;
  private readonly maxConcurrent: Gauge<'controller'>;
  private readonly active: Gauge<'controller'>;

  constructor(registry: Registry) {
    const registers = [registry];
    const labelNames = ['controller'] as const;
    this.total = new Counter({
      name: 'controller_runtime_reconcile_total',
      help: 'Total number of reconciliations per controller',
      labelNames: ['controller', 'result'],
      registers,
    });
    this.errors = new Counter({
      name: 'controller_runtime_reconcile_errors_total',
      help: 'Total number of reconciliation errors per controller',
      labelNames,
      registers,
    });
    this.terminal = new Counter({
      name: 'controller_runtime_terminal_reconcile_errors_total',
      help: 'Total number of terminal reconciliation errors per controller',
      labelNames,
      registers,
    });
    this.time = new Histogram({
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'Length of time per reconciliation per controller',
      labelNames,
      buckets: reconcileBuckets,
      registers,
    });
    this.maxConcurrent = new Gauge({
      name: 'controller_runtime_max_concurrent_reconciles',
      help: 'Maximum number of concurrent reconciles per controller',
      labelNames,
      registers,
    });
    this.active = new Gauge({
      name: 'controller_runtime_active_workers',
      help: 'Number of currently used workers per controller',
      labelNames,
      registers,
    });
  }

  of(controller: string): ControllerMetrics {
    const child = (result: ReconcileOutcome): Counter.Internal => this.total.labels(controller, result);
    const totals = {
      success: child('success'),
      error: child('error'),
      requeue: child('requeue'),
      requeue_after: child('requeue_after'),
    };
    const errors = this.errors.labels(controller);
    const terminal = this.terminal.labels(controller);
    const time = this.time.labels(controller);
    const maxConcurrent = this.maxConcurrent.labels(controller);
    const active = this.active.labels(controller);
    for (const result of results) totals[result].inc(0);
    errors.inc(0);
    terminal.inc(0);
    active.set(0);
    this.time.zero({ controller });
    return {
      setMaxConcurrent: (count) => maxConcurrent.set(count),
      started: () => active.inc(),
      finished(result, seconds) {
        active.dec();
        totals[result].inc();
        time.observe(seconds);
        if (result === 'error') errors.inc();
      },
      terminalError: () => terminal.inc(),
    };
  }
}

const results: readonly ReconcileOutcome[] = ['success', 'error', 'requeue', 'requeue_after'];

/** The buckets of controller-runtime's `controller_runtime_reconcile_time_seconds`, in seconds. */
const reconcileBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
