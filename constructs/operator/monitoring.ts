import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { METRICS_PORT_NAME, operatorLabels, operatorSelector } from './labels';

const API_VERSION = 'monitoring.coreos.com/v1';

/** Which objects of the Prometheus operator to add. Its CRDs must be installed in the cluster. */
export interface MonitoringProps {
  /** A PodMonitor, so that every pod is scraped, standbys too. @default true */
  readonly podMonitor?: boolean;
  /** A PrometheusRule with the alerts of `alertRules`. @default true */
  readonly prometheusRule?: boolean;
  /** How often to scrape, as Prometheus writes durations. @default '30s' */
  readonly interval?: string;
  /** Labels by which a Prometheus selects its monitors and rules, for example `release: prometheus`. @default none */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Props of {@link OperatorMonitoring}. */
export interface OperatorMonitoringProps extends MonitoringProps {
  /** Name of the operator. */
  readonly name: string;
  readonly namespace: string;
  /** The Lease whose holder is the leader. */
  readonly leaseName: string;
}

/** A PodMonitor and a PrometheusRule for an operator. */
export class OperatorMonitoring extends Construct {
  constructor(scope: Construct, id: string, props: OperatorMonitoringProps) {
    super(scope, id);
    const { name, namespace, leaseName, interval = '30s' } = props;
    const metadata = { name, namespace, labels: { ...operatorLabels(name), ...props.labels } };
    if (props.podMonitor ?? true) {
      new ApiObject(this, 'pod-monitor', {
        apiVersion: API_VERSION,
        kind: 'PodMonitor',
        metadata,
        spec: {
          // Makes `job` the operator's name, which the alerts select by.
          jobLabel: 'app.kubernetes.io/instance',
          namespaceSelector: { matchNames: [namespace] },
          selector: { matchLabels: operatorSelector(name) },
          podMetricsEndpoints: [{ port: METRICS_PORT_NAME, path: '/metrics', scheme: 'http', interval }],
        },
      });
    }
    if (props.prometheusRule ?? true) {
      new ApiObject(this, 'prometheus-rule', {
        apiVersion: API_VERSION,
        kind: 'PrometheusRule',
        metadata,
        spec: { groups: [{ name, rules: alertRules({ name, namespace, leaseName }) }] },
      });
    }
  }
}

/** An alerting rule as Prometheus reads it. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  /** For how long `expr` must be true, as Prometheus writes durations. */
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: { readonly summary: string; readonly description: string };
}

/** Which operator the alerts watch: the labels that its PodMonitor gives its series. */
export interface AlertRulesProps {
  readonly name: string;
  readonly namespace: string;
  readonly leaseName: string;
}

/**
 * The alerts for the person on call, as few as possible. Thresholds are starting points: an idle operator's
 * queue is empty, and a failed reconcile is retried with backoff, so a lasting error rate of 0.05 a second
 * means many objects or a broken API.
 */
export function alertRules({ name, namespace, leaseName }: AlertRulesProps): readonly AlertRule[] {
  const series = `namespace="${namespace}",job="${name}"`;
  const rule = (
    alert: string,
    severity: 'warning' | 'critical',
    held: string,
    expr: string,
    summary: string,
    description: string,
  ): AlertRule => ({ alert, expr, for: held, labels: { severity }, annotations: { summary, description } });
  return [
    rule(
      'KindredNoLeader',
      'critical',
      '5m',
      `sum(leader_election_master_status{${series},name="${leaseName}"}) != 1 or absent(leader_election_master_status{${series},name="${leaseName}"})`,
      `${name} has no single leader`,
      `Nothing is reconciled without a leader. Look at the pods of ${name} in ${namespace}, and at the holder of the Lease ${leaseName}: kubectl -n ${namespace} get lease ${leaseName} -o yaml`,
    ),
    rule(
      'KindredReconcileErrors',
      'warning',
      '15m',
      `sum by (controller) (rate(controller_runtime_reconcile_errors_total{${series}}[5m])) > 0.05`,
      `${name} keeps failing to reconcile {{ $labels.controller }}`,
      "The condition Ready of the objects carries the reason in the API server's own words: kubectl get {{ $labels.controller }} -A, then kubectl describe those that are not ready.",
    ),
    rule(
      'KindredMissedEvents',
      'warning',
      '0m',
      `sum(increase(kindred_missed_events_total{${series}}[1h])) > 0`,
      `${name} missed changes of objects`,
      'The audit found objects in the API server that the cache did not know. They are reconciled now, but late: report this as a bug, with the logs of the hour.',
    ),
    rule(
      'KindredQueueDepth',
      'warning',
      '15m',
      `max by (name) (workqueue_depth{${series}}) > 100`,
      `the queue {{ $labels.name }} of ${name} does not drain`,
      'More objects change than are reconciled. Look for throttling by the API server (429), slow admission webhooks, or one object that changes all the time.',
    ),
    rule(
      'KindredQueueLatency',
      'warning',
      '15m',
      `histogram_quantile(0.99, sum by (name, le) (rate(workqueue_queue_duration_seconds_bucket{${series}}[5m]))) > 60`,
      `objects wait more than a minute in the queue {{ $labels.name }} of ${name}`,
      'Compare workqueue_work_duration_seconds: long work means a slow API server, short work means too many changes.',
    ),
  ];
}
