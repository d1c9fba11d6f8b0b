import { k8s } from 'cdk8s-plus-27';
import type { Construct } from 'constructs';
import { z } from 'zod';
import { dns1035Label, dnsLabel, dnsSubdomain, immutable, withRule } from '../kind/fields';
import { defineKind, type KindObject, type TypedObject } from '../kind/kind';
import { compareQuantities, quantity } from '../kind/quantity';
import { cel } from '../kind/schema/cel';
import { owned } from '../kube/resource-type';
import { imageField, replicasField } from './common-fields';

const amounts = () =>
  z.object({
    cpu: quantity().optional().describe('Processor time, in cores: 500m is half a core.'),
    memory: quantity().optional().describe('Memory, in bytes: 512Mi.'),
  });

const requirements = z.object({
  requests: amounts().optional().describe('What each pod is guaranteed.'),
  limits: amounts().optional().describe('What each pod may use at most.'),
});

const requestWithinLimitRule = (resource: 'cpu' | 'memory') =>
  cel(
    `!has(self.requests) || !has(self.limits) || !has(self.requests.${resource}) || !has(self.limits.${resource}) || ` +
      `quantity(string(self.requests.${resource})).compareTo(quantity(string(self.limits.${resource}))) <= 0`,
    `requests.${resource} must not exceed limits.${resource}`,
  );

const isRequestWithinLimit = (resource: 'cpu' | 'memory') => (value: z.output<typeof requirements>) => {
  const request = value.requests?.[resource];
  const limit = value.limits?.[resource];
  return request === undefined || limit === undefined || compareQuantities(request, limit) <= 0;
};

const resourceRequirements = withRule(
  withRule(requirements, requestWithinLimitRule('cpu'), isRequestWithinLimit('cpu')),
  requestWithinLimitRule('memory'),
  isRequestWithinLimit('memory'),
);

/** The spec of a MicroServiceDeploy. */
const microServiceDeploySpec = withRule(
  z.object({
    msName: immutable(dns1035Label()).describe(
      'Name of the service that all its instances stand behind. Cannot be changed: the pods are selected by it.',
    ),
    fullName: dns1035Label().describe('Name of this instance. A new name replaces its Deployment.'),
    version: z
      .string()
      .max(63)
      .regex(/^[A-Za-z0-9]([A-Za-z0-9_-]|[.][A-Za-z0-9_-])*[.]?$/)
      .describe(
        'Version of this instance; part of the path of its logs. Letters, digits, ".", "_" and "-", without "..".',
      ),
    path: dnsLabel().describe("Major version: the first label of the instance's host name."),
    image: imageField().describe('Container image of the service.'),
    replicas: replicasField().default(1).describe('Number of pods while neither autoscaling nor idle.'),
    autoscaling: z.boolean().default(false).describe('Let a HorizontalPodAutoscaler choose the number of pods.'),
    needAuth: z.boolean().default(false).describe("Callers need the tenant's basic authentication."),
    idle: z.boolean().default(false).describe('Scale to zero.'),
    config: z.string().max(524288).optional().describe('Text of ms.properties, mounted at /home/admin/conf.'),
    configSecretRef: z
      .object({
        name: dnsSubdomain().describe('Name of the Secret, in the same namespace.'),
        key: z
          .string()
          .max(253)
          .regex(/^[-._a-zA-Z0-9]+$/)
          .describe('Key within the Secret.'),
      })
      .optional()
      .describe('Take the text of ms.properties from a Secret instead.'),
    creationTimestamp: z
      .string()
      .max(32)
      .regex(/^[0-9]+$/)
      .optional()
      .describe('Milliseconds since 1970, as digits. A new value restarts the pods.'),
    resourceRequirements: resourceRequirements.optional().describe('What each pod requests and may use.'),
  }),
  cel('!(has(self.config) && has(self.configSecretRef))', 'give at most one of config and configSecretRef', {
    fieldPath: '.configSecretRef',
  }),
  (spec) => spec.config === undefined || spec.configSecretRef === undefined,
);

const MADE_BY = { 'my-domain-ops-controller-make': 'true' };

type Self = TypedObject<typeof microServiceDeploySpec, z.ZodObject>;

/** One instance of a micro service. All instances of a service share its Service and ServiceAccount. */
export const MicroServiceDeploy = defineKind({
  group: 'custom.ops',
  version: 'v1',
  kind: 'MicroServiceDeploy',
  plural: 'microservicedeploys',
  scope: 'Namespaced',
  description: 'One instance of a micro service. All instances of a service share its Service and ServiceAccount.',
  spec: microServiceDeploySpec,
  status: z.object({
    replicas: z.int32().min(0).optional().describe('Number of pods that exist.'),
    readyReplicas: z.int32().min(0).optional().describe('Number of pods that are ready.'),
  }),
  columns: [
    { name: 'Service', type: 'string', jsonPath: '.spec.msName' },
    { name: 'Version', type: 'string', jsonPath: '.spec.version' },
    { name: 'Image', type: 'string', jsonPath: '.spec.image', priority: 1 },
    { name: 'Pods', type: 'integer', jsonPath: '.status.readyReplicas', description: 'Number of pods ready.' },
  ],
  owns: [owned.ConfigMap, owned.Deployment, owned.Service, owned.HorizontalPodAutoscaler],
  shared: [
    {
      name: 'service',
      owns: [owned.ServiceAccount, owned.Service],
      key: ({ spec }) => spec.msName,
      children(scope, msName) {
        new k8s.KubeServiceAccount(scope, 'account', { metadata: { name: msName, labels: MADE_BY } });
        service(scope, 'service', msName, { app: msName, selector: { app: msName } });
      },
    },
  ],
  // An autoscaler never scales from 0, so a Deployment that it takes over at 0 pods would stay there.
  seeds: [
    {
      of: owned.Deployment,
      path: ['spec', 'replicas'],
      writer: owned.HorizontalPodAutoscaler,
      keep: (live) => typeof live === 'number' && live > 0,
    },
  ],
  samples: [
    {
      name: 'ms-sample-v1s0',
      spec: {
        msName: 'ms-sample',
        fullName: 'ms-sample-v1s0',
        version: '1.0',
        path: 'v1',
        image: 'just a image url',
        replicas: 3,
        autoscaling: true,
        needAuth: true,
        config: 'password=88888888',
        creationTimestamp: '1535546718115',
        resourceRequirements: { limits: { cpu: '2', memory: '4Gi' }, requests: { cpu: '2', memory: '4Gi' } },
        idle: false,
      },
    },
  ],
  children(scope, self) {
    const { spec } = self;
    if (spec.configSecretRef === undefined) configMap(scope, spec);
    instanceDeployment(scope, spec, { ...MADE_BY, app: spec.msName });
    if (spec.fullName !== spec.msName) {
      service(scope, 'service', spec.fullName, {
        app: spec.msName,
        selector: { app: spec.msName, 'custom.ops/instance': spec.fullName },
        annotations: { 'app.ops.my.domain/path': spec.path, 'app.ops.my.domain/need-auth': String(spec.needAuth) },
      });
    }
    if (spec.autoscaling && !spec.idle) autoscaler(scope, spec);
  },
  observe({ children }) {
    const status = children.one(owned.Deployment)?.status;
    return { replicas: status?.replicas ?? 0, readyReplicas: status?.readyReplicas ?? 0 };
  },
});
export type MicroServiceDeploy = KindObject<typeof MicroServiceDeploy>;

type Spec = z.output<typeof microServiceDeploySpec>;

function configMap(scope: Construct, { msName, fullName, config }: Self['spec']): void {
  new k8s.KubeConfigMap(scope, 'config', {
    metadata: { name: fullName, labels: { ...MADE_BY, app: msName } },
    data: { 'ms.properties': config ?? '' },
  });
}

/** The Deployment of one instance of a micro service. */
function instanceDeployment(scope: Construct, spec: Spec, labels: Record<string, string>): void {
  const { msName, fullName, creationTimestamp } = spec;
  const podLabels = { app: msName, 'custom.ops/instance': fullName };
  new k8s.KubeDeployment(scope, 'deployment', {
    metadata: {
      name: fullName,
      labels,
      annotations:
        creationTimestamp === undefined ? undefined : { 'app.ops.my.domain/last-rollout-at': creationTimestamp },
    },
    spec: {
      replicas: replicas(spec),
      selector: { matchLabels: podLabels },
      template: {
        metadata: {
          labels: podLabels,
          annotations: {
            'prometheus.io/scrape': 'true',
            ...(creationTimestamp === undefined ? {} : { 'app.ops.my.domain/create-at': creationTimestamp }),
          },
        },
        spec: {
          serviceAccountName: msName,
          initContainers: [logPermissions()],
          containers: [container(spec)],
          volumes: [logVolume(spec), configVolume(spec)],
        },
      },
    },
  });
}

function replicas({ idle, autoscaling, replicas: wanted }: Spec): number {
  if (idle) return 0;
  return autoscaling ? Math.max(1, wanted) : wanted;
}

const LOGS = { name: 'log', mountPath: '/home/admin/logs' };
const CONFIG = { name: 'config', mountPath: '/home/admin/conf' };
const PROPERTIES = 'ms.properties';
const MODE = 0o644;

/** Root owns the log directory on the host; the service's user must be able to write there. */
function logPermissions(): k8s.Container {
  return {
    name: 'log-volume-mount-hack',
    image: 'busybox',
    imagePullPolicy: 'Always',
    command: ['sh', '-c', 'chmod -R 777 /home/admin/logs || exit 0'],
    volumeMounts: [LOGS],
  };
}

function container({ msName, image, resourceRequirements }: Spec): k8s.Container {
  return {
    name: msName,
    image,
    imagePullPolicy: 'Always',
    ports: [{ containerPort: 9898, protocol: 'TCP' }],
    env: [
      { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'SERVICE_NAME', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
    ],
    volumeMounts: [LOGS, CONFIG],
    resources: resourceRequirements && {
      requests: quantities(resourceRequirements.requests),
      limits: quantities(resourceRequirements.limits),
    },
  };
}

type Amounts = NonNullable<NonNullable<Spec['resourceRequirements']>['requests']>;

function quantities(amounts: Amounts | undefined): Record<string, k8s.Quantity> | undefined {
  if (amounts === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(amounts).map(([name, value]) => [name, k8s.Quantity.fromString(String(value))]),
  );
}

function logVolume({ msName, version }: Spec): k8s.Volume {
  return { name: LOGS.name, hostPath: { path: `/data0/logs/${msName}/${version}`, type: 'DirectoryOrCreate' } };
}

function configVolume({ fullName, configSecretRef }: Spec): k8s.Volume {
  if (configSecretRef === undefined) return { name: CONFIG.name, configMap: { name: fullName, defaultMode: MODE } };
  const { name, key } = configSecretRef;
  return { name: CONFIG.name, secret: { secretName: name, defaultMode: MODE, items: [{ key, path: PROPERTIES }] } };
}

const PORT = 9898;

interface ServiceProps {
  readonly app: string;
  readonly selector: Record<string, string>;
  readonly annotations?: Record<string, string>;
}

function service(scope: Construct, id: string, name: string, props: ServiceProps): void {
  new k8s.KubeService(scope, id, {
    metadata: { name, labels: { ...MADE_BY, app: props.app }, annotations: props.annotations },
    spec: {
      selector: props.selector,
      ports: [{ name: 'http', port: PORT, protocol: 'TCP', targetPort: k8s.IntOrString.fromNumber(PORT) }],
    },
  });
}

function autoscaler(scope: Construct, { msName, fullName }: Self['spec']): void {
  new k8s.KubeHorizontalPodAutoscalerV2(scope, 'autoscaler', {
    metadata: { name: fullName, labels: { ...MADE_BY, app: msName } },
    spec: {
      minReplicas: 1,
      maxReplicas: 10,
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: fullName },
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 81 } } },
      ],
    },
  });
}
