import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { InvalidPropsError } from './invalid-props-error';
import { operatorLabels, operatorSelector } from './labels';
import { OperatorMonitoring } from './monitoring';
import { leaseNameOf } from './operator-args';
import { operatorProblems } from './operator-problems';
import { operatorDefaults } from './operator-props';
import type { OperatorDeploymentProps } from './operator-props';
import { METRICS_PORT_NAME, operatorPod } from './pod';
import { servingOf } from './webhook';
import { webhookProblems } from './webhook-problems';
import { addWebhookService, webhookIngress } from './webhook-service';

/**
 * An operator as it runs in a cluster: ServiceAccount, Deployment, PodDisruptionBudget, metrics Service, NetworkPolicy, and on
 * request what the Prometheus operator reads; a Service for the webhook if a kind has several versions. Its permissions are not among them, see `OperatorRole` and `LeaderElectionRole`.
 *
 * Errors: InvalidPropsError with all that is wrong with the props.
 */
export class OperatorDeployment extends Construct {
  /** The account that roles are bound to. */
  readonly serviceAccount: { readonly name: string; readonly namespace: string };
  /** The Lease that its pods elect a leader by. */
  readonly leaseName: string;

  constructor(scope: Construct, id: string, props: OperatorDeploymentProps) {
    super(scope, id);
    const problems = [...operatorProblems(props), ...webhookProblems(props)];
    if (problems.length > 0) throw new InvalidPropsError(`OperatorDeployment ${this.node.path}`, problems);
    const { name, namespace } = props;
    this.serviceAccount = { name, namespace };
    this.leaseName = leaseNameOf(props);
    const labels = operatorLabels(name);
    const metadata = { name, namespace, labels };

    const account = new k8s.KubeServiceAccount(this, 'service-account', {
      metadata,
      automountServiceAccountToken: false,
    });
    const deployment = new k8s.KubeDeployment(this, 'deployment', {
      metadata,
      spec: {
        replicas: props.replicas ?? operatorDefaults.replicas,
        revisionHistoryLimit: 5,
        selector: { matchLabels: operatorSelector(name) },
        // The new pod is ready before an old one goes; the Lease keeps them from working at the same time.
        strategy: {
          type: 'RollingUpdate',
          rollingUpdate: { maxSurge: k8s.IntOrString.fromNumber(1), maxUnavailable: k8s.IntOrString.fromNumber(0) },
        },
        template: operatorPod(props),
      },
    });
    deployment.addDependency(account);
    this.addAvailability(props, metadata);
    this.addNetwork(props, metadata);
    if (props.monitoring !== undefined) {
      new OperatorMonitoring(this, 'monitoring', { ...props.monitoring, name, namespace, leaseName: this.leaseName });
    }
  }

  private addAvailability({ name }: OperatorDeploymentProps, metadata: k8s.ObjectMeta): void {
    new k8s.KubePodDisruptionBudget(this, 'disruption-budget', {
      metadata,
      spec: {
        maxUnavailable: k8s.IntOrString.fromNumber(1),
        selector: { matchLabels: operatorSelector(name) },
        // A pod that never becomes ready must not block a node's drain.
        unhealthyPodEvictionPolicy: 'AlwaysAllow',
      },
    });
  }

  private addNetwork(props: OperatorDeploymentProps, metadata: k8s.ObjectMeta): void {
    const selector = operatorSelector(props.name);
    const port = k8s.IntOrString.fromString(METRICS_PORT_NAME);
    new k8s.KubeService(this, 'metrics-service', {
      metadata: { ...metadata, name: `${props.name}-metrics` },
      spec: {
        type: 'ClusterIP',
        selector,
        ports: [
          {
            name: METRICS_PORT_NAME,
            port: props.metricsPort ?? operatorDefaults.metricsPort,
            targetPort: port,
            protocol: 'TCP',
          },
        ],
      },
    });
    const serves = servingOf(props) !== undefined;
    if (serves) addWebhookService(this, props.name, metadata);
    // Ingress only: the address of the API server is the cluster's secret, so egress cannot be closed here.
    new k8s.KubeNetworkPolicy(this, 'network-policy', {
      metadata,
      spec: {
        podSelector: { matchLabels: selector },
        policyTypes: ['Ingress'],
        ingress: [
          {
            ports: [{ port, protocol: 'TCP' }],
            ...(props.metricsFrom === undefined ? {} : { from: [...props.metricsFrom] }),
          },
          ...(serves ? [webhookIngress()] : []),
        ],
      },
    });
  }
}
