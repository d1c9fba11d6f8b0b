import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { alertRules } from './alert-rules';
import { operatorLabels, operatorSelector } from './labels';
import { METRICS_PORT_NAME } from './pod';

const API_VERSION = 'monitoring.coreos.com/v1';

/** Which objects of the Prometheus operator to add. Its CRDs must stand in the cluster. */
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

/** What {@link OperatorMonitoring} is made of. */
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
