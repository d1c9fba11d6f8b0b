import { k8s } from 'cdk8s-plus-27';
import { nodeOptions } from './heap';
import { operatorLabels, operatorSelector } from './labels';
import { operatorArgs } from './operator-args';
import { operatorDefaults } from './operator-props';
import type { OperatorDeploymentProps } from './operator-props';
import { webhookPod } from './webhook';

/** Name of the port of `/metrics`, `/healthz` and `/readyz`. */
export const METRICS_PORT_NAME = 'metrics';

/** The user of distroless' `nonroot` images. */
const NON_ROOT = 65532;

/** The pod template of an operator: passes the `restricted` Pod Security Standard and asks for no more than it uses. */
export function operatorPod(props: OperatorDeploymentProps): k8s.PodTemplateSpec {
  const { name } = props;
  const volumes = volumesOf(props);
  return {
    metadata: { labels: operatorLabels(name) },
    spec: {
      serviceAccountName: name,
      // The one pod that talks to the API server; the ServiceAccount itself says no.
      automountServiceAccountToken: true,
      enableServiceLinks: false,
      terminationGracePeriodSeconds:
        props.terminationGracePeriodSeconds ?? operatorDefaults.terminationGracePeriodSeconds,
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
  const { volumes } = webhookPod(props);
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
  const webhook = webhookPod(props);
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

function probe(path: string, timing: Pick<k8s.Probe, 'periodSeconds' | 'failureThreshold'>): k8s.Probe {
  const port = k8s.IntOrString.fromString(METRICS_PORT_NAME);
  return { httpGet: { path, port, scheme: 'HTTP' }, timeoutSeconds: 3, ...timing };
}

/** Apart if possible, together if not; counted by revision, so that a rollout's old pods do not crowd the new ones. */
function spread(name: string, topologyKey: string): k8s.TopologySpreadConstraint {
  return {
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: operatorSelector(name) },
    matchLabelKeys: ['pod-template-hash'],
  };
}

function memoryLimitMiB(props: OperatorDeploymentProps): number {
  return props.memoryLimitMiB ?? operatorDefaults.memoryLimitMiB;
}

/** What is in the scratch directory is memory as well. */
function heapMemoryMiB(props: OperatorDeploymentProps): number {
  return memoryLimitMiB(props) - (props.scratch?.sizeMiB ?? 0);
}
