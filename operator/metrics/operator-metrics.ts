import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import type { QueueMetrics } from '../workqueue/work-queue';
import { ControllerMetricsFamily, type ControllerMetrics } from './controller-metrics';
import { QueueMetricsFamily } from './workqueue-metrics';

/** Options of `OperatorMetrics`. */
export interface OperatorMetricsOptions {
  /**
   * Also exposes `process_*` and `nodejs_*`, which need an observer of the garbage collector.
   * @default true
   */
  readonly defaults?: boolean;
}

/**
 * All metrics of the operator. Names, labels and buckets are controller-runtime's where it has the metric, so
 * that existing dashboards and alerts work; `kindred_*` is ours.
 *
 * Guarantees: recording never does I/O and never throws on the values that its types allow. Metrics with a
 * fixed set of labels resolve them once: keep the object that `controller()` or `workqueue()` returns.
 *
 * Caveats: labels are never namespaces or object names; their number is bounded by the kinds and verbs that
 * exist.
 */
export class OperatorMetrics {
  /** The registry that a scrape renders. */
  readonly registry = new Registry();
  private readonly controllers: ControllerMetricsFamily;
  private readonly queues: QueueMetricsFamily;
  private readonly requests: CounterChildren<'code' | 'method' | 'host'>;
  private readonly leaders: Gauge<'name'>;
  private readonly missed: CounterChildren<'type'>;
  private readonly audits: CounterChildren<'type' | 'outcome'>;
  private readonly writes: CounterChildren<'verb' | 'type'>;
  private readonly events: CounterChildren<'outcome'>;
  private readonly objectCounts = new Map<string, () => number>();

  constructor(options: OperatorMetricsOptions = {}) {
    const registers = [this.registry];
    if (options.defaults !== false) collectDefaultMetrics({ register: this.registry });
    this.controllers = new ControllerMetricsFamily(this.registry);
    this.queues = new QueueMetricsFamily(this.registry);
    this.requests = new CounterChildren(
      this.registry,
      'rest_client_requests_total',
      ['code', 'method', 'host'],
      'Number of HTTP requests, partitioned by status code, method, and host.',
    );
    this.leaders = new Gauge({
      name: 'leader_election_master_status',
      help: "1 while this process holds the Lease 'name', else 0. Group by name.",
      labelNames: ['name'],
      registers,
    });
    this.missed = new CounterChildren(
      this.registry,
      'kindred_missed_events_total',
      ['type'],
      'Objects that the periodic audit found different from the cache. Anything but 0 is a bug.',
    );
    this.audits = new CounterChildren(
      this.registry,
      'kindred_audits_total',
      ['type', 'outcome'],
      'Audits of a cache by what they found: agrees, missed, inconclusive, failed. Without agrees, 0 missed events prove nothing.',
    );
    this.writes = new CounterChildren(
      this.registry,
      'kindred_writes_total',
      ['verb', 'type'],
      'Writes sent to the Kubernetes API, by verb and resource type.',
    );
    this.events = new CounterChildren(
      this.registry,
      'kindred_events_total',
      ['outcome'],
      'Kubernetes Events by what became of them: written, failed, dropped_spam, dropped_full, dropped_terminating.',
    );
    this.registerObjects();
  }

  /** The metrics of one controller; call it once per controller and keep the result. */
  controller(name: string): ControllerMetrics {
    return this.controllers.of(name);
  }

  /** The metrics of one work queue. The label `controller` equals `name`, as in controller-runtime. */
  workqueue(name: string): QueueMetrics {
    return this.queues.of(name);
  }

  /**
   * Counts one request.
   *
   * @param code the HTTP status, or `<error>` when there was no response (client-go's word).
   */
  restRequest(code: number | '<error>', method: string, host: string): void {
    this.requests.of({ code: String(code), method, host }).inc();
  }

  /** Whether this process holds the Lease of this name. */
  leader(name: string, holds: boolean): void {
    this.leaders.labels(name).set(holds ? 1 : 0);
  }

  /**
   * Creates the series of the consistency checks of this type at 0: Prometheus sees no increase in a series
   * that begins above 0.
   */
  observeAudits(type: string): void {
    this.missed.of({ type }).inc(0);
    for (const outcome of auditOutcomes) this.audits.of({ type, outcome }).inc(0);
  }

  /** Counts one consistency check of a cache of this type. */
  audited(type: string, outcome: AuditOutcome): void {
    this.audits.of({ type, outcome }).inc();
  }

  /** Counts objects of this type whose events the watch missed, as a consistency check found. */
  missedEvent(type: string, count = 1): void {
    this.missed.of({ type }).inc(count);
  }

  /** Counts a write of this verb (`create`, `apply`, `patch`, `delete`...). */
  write(verb: string, type: string): void {
    this.writes.of({ verb, type }).inc();
  }

  /** Counts a Kubernetes Event by its outcome. */
  event(outcome: EventOutcome): void {
    this.events.of({ outcome }).inc();
  }

  /** Shows the number of objects of a kind as `kindred_objects`; `count` is evaluated at every scrape and must be cheap. */
  observeObjects(kind: string, count: () => number): void {
    this.objectCounts.set(kind, count);
  }

  /** The text of `/metrics`. */
  render(): Promise<string> {
    return this.registry.metrics();
  }

  private registerObjects(): void {
    const counts = this.objectCounts;
    new Gauge({
      name: 'kindred_objects',
      help: 'Objects of each kind that the operator knows of.',
      labelNames: ['kind'],
      registers: [this.registry],
      collect() {
        for (const [kind, count] of counts) this.labels(kind).set(count());
      },
    });
  }
}

const auditOutcomes = ['agrees', 'missed', 'inconclusive', 'failed'] as const;

/**
 * The outcomes of a consistency check. `inconclusive`: it proves nothing, because the cache and the list
 * could not be compared; a rollback of the server's history counts here too. `failed`: the list failed.
 */
export type AuditOutcome = (typeof auditOutcomes)[number];

/** The outcomes of recording a Kubernetes Event. */
export type EventOutcome = 'written' | 'failed' | 'dropped_spam' | 'dropped_full' | 'dropped_terminating';

/** A counter that caches its children, so that each set of labels is resolved once. */
class CounterChildren<L extends string> {
  private readonly counter: Counter<L>;
  private readonly children = new Map<string, Counter.Internal>();

  constructor(
    registry: Registry,
    name: string,
    private readonly labelNames: readonly L[],
    help: string,
  ) {
    this.counter = new Counter({ name, help, labelNames, registers: [registry] });
  }

  of(labels: Readonly<Record<L, string>>): Counter.Internal {
    const key = this.labelNames.map((name) => labels[name]).join('\u0000');
    let child = this.children.get(key);
    if (child === undefined) {
      child = this.counter.labels(labels);
      this.children.set(key, child);
    }
    return child;
  }
}
