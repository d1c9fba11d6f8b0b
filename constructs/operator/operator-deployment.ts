import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { hasEffects } from '../kind/kind';
import { InvalidPropsError } from '../kube/errors';
import { nodeOptions } from './node-options';
import { METRICS_PORT_NAME, operatorLabels, operatorSelector } from './labels';
import { OperatorMonitoring } from './monitoring';
import { operatorDefaults, operatorProblems, webhookProblems, type OperatorDeploymentProps } from './operator-props';
import { addWebhookService, resolveConversionServing, webhookArgs, webhookIngress, webhookPodParts } from './webhook';

/**
 * An operator as it runs in a cluster: ServiceAccount, Deployment, PodDisruptionBudget, metrics Service,
 * NetworkPolicy, a Service for the webhook if a kind has several versions, and on request objects for the
 * Prometheus operator. Its permissions are not included, see `OperatorRole` and `LeaderElectionRole`.
 *
 * Errors: InvalidPropsError with all that is wrong with the props.
 */
export class OperatorDeployment extends Construct {
  /** The account that roles are bound to. */
  readonly serviceAccount: { readonly name: string; readonly namespace: string };
  /** The Lease by which its pods elect a leader. */
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
        // The new pod is ready before an old one is deleted; the Lease keeps them from working at the same
        // time.
        strategy: {
          type: 'RollingUpdate',
          rollingUpdate: { maxSurge: k8s.IntOrString.fromNumber(1), maxUnavailable: k8s.IntOrString.fromNumber(0) },
        },
        template: operatorPod(props),
      },
    });
    deployment.addDependency(account);
    this.addPodDisruptionBudget(props, metadata);
    this.addServicesAndNetworkPolicy(props, metadata);
    if (props.monitoring !== undefined) {
      new OperatorMonitoring(this, 'monitoring', { ...props.monitoring, name, namespace, leaseName: this.leaseName });
    }
  }

  private addPodDisruptionBudget({ name }: OperatorDeploymentProps, metadata: k8s.ObjectMeta): void {
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

  private addServicesAndNetworkPolicy(props: OperatorDeploymentProps, metadata: k8s.ObjectMeta): void {
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
    const serves = resolveConversionServing(props) !== undefined;
    if (serves) addWebhookService(this, props.name, metadata);
    // Ingress only: the address of the API server is not known here, so egress cannot be restricted.
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

/** The props that the operator's command line is derived from. */
export type OperatorArgsProps = Pick<
  OperatorDeploymentProps,
  | 'name'
  | 'namespace'
  | 'kinds'
  | 'watchNamespaces'
  | 'leaseName'
  | 'metricsPort'
  | 'logLevel'
  | 'args'
  | 'conversion'
  | 'terminationGracePeriodSeconds'
>;

/**
 * The arguments of `kindred-operator`, the image's entrypoint.
 *
 * Leader election is always on: even a single replica runs beside its successor during a rollout. Kinds and
 * namespaces are sorted, so that their order in the props never causes a rollout.
 */
export function operatorArgs(props: OperatorArgsProps): readonly string[] {
  const { namespace, watchNamespaces, metricsPort, logLevel, args = [] } = props;
  return [
    `--kinds=${sorted(props.kinds.map(({ crdName }) => crdName)).join()}`,
    ...(watchNamespaces === undefined ? [] : [`--namespaces=${sorted(watchNamespaces).join()}`]),
    '--leader-elect',
    `--lease-name=${leaseNameOf(props)}`,
    `--lease-namespace=${namespace}`,
    `--metrics-port=${metricsPort ?? operatorDefaults.metricsPort}`,
    `--log-level=${logLevel ?? operatorDefaults.logLevel}`,
    ...webhookArgs(props),
    ...drainArgs(props),
    ...args,
  ];
}

/** Seconds that an operator has to stop, besides those for the steps of its effects. */
export const SHUTDOWN_GRACE_SECONDS = 30;
/** Seconds that the steps of effects have to end, unless the props say otherwise. */
const DRAIN_SECONDS = 300;

/** How long a stopping pod may take, in seconds. */
function gracePeriodSeconds(props: GracePeriodProps): number {
  const { terminationGracePeriodSeconds } = props;
  if (terminationGracePeriodSeconds !== undefined) return terminationGracePeriodSeconds;
  if (!hasEffects(props.kinds)) return operatorDefaults.terminationGracePeriodSeconds;
  return (givenDrainSeconds(props) ?? DRAIN_SECONDS) + SHUTDOWN_GRACE_SECONDS;
}

/** The last `--drain-seconds` of the arguments, which is the one that the operator takes. */
function givenDrainSeconds({ args = [] }: GracePeriodProps): number | undefined {
  const values = args.flatMap((arg) => /^--drain-seconds=(\d+)$/.exec(arg)?.[1] ?? []);
  return values.length === 0 ? undefined : Number(values.at(-1));
}

/** For kinds with effects: the operator must end before the kubelet kills it. */
function drainArgs(props: GracePeriodProps): readonly string[] {
  if (!hasEffects(props.kinds) || givenDrainSeconds(props) !== undefined) return [];
  return [`--drain-seconds=${Math.max(1, gracePeriodSeconds(props) - SHUTDOWN_GRACE_SECONDS)}`];
}

type GracePeriodProps = Pick<OperatorDeploymentProps, 'kinds' | 'terminationGracePeriodSeconds' | 'args'>;

function sorted(values: readonly string[]): readonly string[] {
  return [...values].sort();
}

/** The name of an operator's Lease. */
function leaseNameOf(props: Pick<OperatorDeploymentProps, 'name' | 'leaseName'>): string {
  return props.leaseName ?? props.name;
}

/** The user of distroless' `nonroot` images. */
const NON_ROOT = 65532;

/**
 * The pod template of an operator: meets the `restricted` Pod Security Standard and requests no more than it
 * uses.
 */
function operatorPod(props: OperatorDeploymentProps): k8s.PodTemplateSpec {
  const { name } = props;
  const volumes = volumesOf(props);
  return {
    metadata: { labels: operatorLabels(name) },
    spec: {
      serviceAccountName: name,
      // This pod needs the token, since it calls the API server; the ServiceAccount turns it off for all
      // others.
      automountServiceAccountToken: true,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: gracePeriodSeconds(props),
      ...(props.priorityClassName === undefined ? {} : { priorityClassName: props.priorityClassName }),
      ...(props.nodeSelector === undefined ? {} : { nodeSelector: { ...props.nodeSelector } }),
      ...(props.tolerations === undefined ? {} : { tolerations: [...props.tolerations] }),
      ...(props.imagePullSecrets === undefined
        ? {}
        : { imagePullSecrets: props.imagePullSecrets.map((secret) => ({ name: secret })) }),
      securityContext: {
        runAsNonRoot: true,
        runAsUser: NON_ROOT,
        runAsGroup: NON_ROOT,
        ...(volumes.length === 0 ? {} : { fsGroup: NON_ROOT }),
        seccompProfile: { type: 'RuntimeDefault' },
      },
      topologySpreadConstraints: [spread(name, 'kubernetes.io/hostname'), spread(name, 'topology.kubernetes.io/zone')],
      containers: [operatorContainer(props)],
      ...(volumes.length === 0 ? {} : { volumes: [...volumes] }),
    },
  };
}

function volumesOf(props: OperatorDeploymentProps): readonly k8s.Volume[] {
  const { scratch, configDirectory } = props;
  const { volumes } = webhookPodParts(props);
  const found: k8s.Volume[] = [];
  if (scratch !== undefined) {
    const sizeLimit = k8s.Quantity.fromString(`${scratch.sizeMiB}Mi`);
    found.push({ name: 'scratch', emptyDir: { medium: 'Memory', sizeLimit } });
  }
  if (configDirectory !== undefined) {
    const { secretName, files } = configDirectory;
    const items = files && Object.entries(files).map(([path, key]) => ({ key, path }));
    // Owner and group only: some of these files hold passwords.
    found.push({ name: 'config', secret: { secretName, defaultMode: 0o440, ...(items && { items }) } });
  }
  return [...found, ...volumes];
}

function operatorContainer(props: OperatorDeploymentProps): k8s.Container {
  const { scratch, configDirectory } = props;
  const webhook = webhookPodParts(props);
  const volumeMounts = [
    ...(scratch === undefined ? [] : [{ name: 'scratch', mountPath: scratch.path }]),
    ...(configDirectory === undefined ? [] : [{ name: 'config', mountPath: configDirectory.path, readOnly: true }]),
    ...webhook.volumeMounts,
  ];
  return {
    name: 'operator',
    image: props.image,
    imagePullPolicy: props.imagePullPolicy ?? 'IfNotPresent',
    args: [...operatorArgs(props)],
    env: [{ name: 'NODE_OPTIONS', value: nodeOptions(heapMemoryMiB(props)) }],
    ports: [
      {
        name: METRICS_PORT_NAME,
        containerPort: props.metricsPort ?? operatorDefaults.metricsPort,
        protocol: 'TCP',
      },
      ...webhook.ports,
    ],
    // Up to a minute to load and to reach the API server; liveness takes over from there.
    startupProbe: probe('/healthz', { periodSeconds: 2, failureThreshold: 30 }),
    livenessProbe: probe('/healthz', { periodSeconds: 10, failureThreshold: 3 }),
    readinessProbe: probe('/readyz', { periodSeconds: 5, failureThreshold: 3 }),
    resources: {
      requests: {
        cpu: k8s.Quantity.fromString(props.cpuRequest ?? operatorDefaults.cpuRequest),
        memory: k8s.Quantity.fromString(`${props.memoryRequestMiB ?? operatorDefaults.memoryRequestMiB}Mi`),
      },
      limits: { memory: k8s.Quantity.fromString(`${memoryLimitMiB(props)}Mi`) },
    },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      privileged: false,
      readOnlyRootFilesystem: true,
    },
    terminationMessagePolicy: 'FallbackToLogsOnError',
    ...(volumeMounts.length === 0 ? {} : { volumeMounts }),
  };
}

/** The memory limit without the scratch directory, which is in memory as well. */
function heapMemoryMiB(props: OperatorDeploymentProps): number {
  return memoryLimitMiB(props) - (props.scratch?.sizeMiB ?? 0);
}

function memoryLimitMiB(props: OperatorDeploymentProps): number {
  return props.memoryLimitMiB ?? operatorDefaults.memoryLimitMiB;
}

function probe(path: string, timing: Pick<k8s.Probe, 'periodSeconds' | 'failureThreshold'>): k8s.Probe {
  const port = k8s.IntOrString.fromString(METRICS_PORT_NAME);
  return { httpGet: { path, port, scheme: 'HTTP' }, timeoutSeconds: 3, ...timing };
}

/**
 * Spreads the pods if possible. Counts by revision, so that a rollout's old pods do not affect the new ones.
 */
function spread(name: string, topologyKey: string): k8s.TopologySpreadConstraint {
  return {
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: operatorSelector(name) },
    matchLabelKeys: ['pod-template-hash'],
  };
}
