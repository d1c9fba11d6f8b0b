import { k8s } from 'cdk8s-plus-27';
import type { Construct } from 'constructs';
import type { z } from 'zod';
import type { microServiceDeploySpec } from './micro-service-deploy-spec';

type Spec = z.output<typeof microServiceDeploySpec>;

const LOGS = { name: 'log', mountPath: '/home/admin/logs' };
const CONFIG = { name: 'config', mountPath: '/home/admin/conf' };
const PROPERTIES = 'ms.properties';
const MODE = 0o644;

/** The Deployment of one instance of a micro service. */
export function instanceDeployment(scope: Construct, spec: Spec, labels: Record<string, string>): void {
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

/** The log folder on the host belongs to root; the service's user must be able to write there. */
function logPermissions(): k8s.Container {
  return {
    name: 'log-volume-mount-hack',
    image: 'busybox',
    imagePullPolicy: 'Always',
    command: ['sh', '-c', 'chmod -R 777 /home/admin/logs || exit 0'],
    volumeMounts: [LOGS],
  };
}

function logVolume({ msName, version }: Spec): k8s.Volume {
  return { name: LOGS.name, hostPath: { path: `/data0/logs/${msName}/${version}`, type: 'DirectoryOrCreate' } };
}

function configVolume({ fullName, configSecretRef }: Spec): k8s.Volume {
  if (configSecretRef === undefined) return { name: CONFIG.name, configMap: { name: fullName, defaultMode: MODE } };
  const { name, key } = configSecretRef;
  return { name: CONFIG.name, secret: { secretName: name, defaultMode: MODE, items: [{ key, path: PROPERTIES }] } };
}
