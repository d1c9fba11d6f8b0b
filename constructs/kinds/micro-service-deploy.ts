import { k8s } from 'cdk8s-plus-27';
import type { Construct } from 'constructs';
import { z } from 'zod';
import { defineKind } from '../core/kind';
import type { KindObject, TypedObject } from '../core/kind';
import { owned } from '../core/owned';
import { microServiceDeploySpec } from './micro-service-deploy-spec';
import { instanceDeployment } from './micro-service-deployment';

const MADE_BY = { 'my-domain-ops-controller-make': 'true' };
const PORT = 9898;

type Self = TypedObject<typeof microServiceDeploySpec, z.ZodObject>;

function service(scope: Construct, id: string, name: string, props: ServiceParts): void {
  new k8s.KubeService(scope, id, {
    metadata: { name, labels: { ...MADE_BY, app: props.app }, annotations: props.annotations },
    spec: {
      selector: props.selector,
      ports: [{ name: 'http', port: PORT, protocol: 'TCP', targetPort: k8s.IntOrString.fromNumber(PORT) }],
    },
  });
}

interface ServiceParts {
  readonly app: string;
  readonly selector: Record<string, string>;
  readonly annotations?: Record<string, string>;
}

function configMap(scope: Construct, { msName, fullName, config }: Self['spec']): void {
  new k8s.KubeConfigMap(scope, 'config', {
    metadata: { name: fullName, labels: { ...MADE_BY, app: msName } },
    data: { 'ms.properties': config ?? '' },
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
    replicas: z.int32().min(0).optional().describe('Number of pods that stand.'),
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
