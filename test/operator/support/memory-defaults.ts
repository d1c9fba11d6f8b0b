import type { KubeObject } from '../../../constructs/kube/kube-object';

interface Container {
  imagePullPolicy?: string;
  ports?: { protocol?: string }[];
}

interface WithPods {
  spec: {
    replicas?: number;
    strategy?: object;
    template: { spec: { restartPolicy?: string; containers: Container[]; initContainers?: Container[] } };
  };
}

interface ServiceLike {
  spec: { type?: string; clusterIP?: string; ports?: { protocol?: string }[] };
}

/** Fills in what the API server fills in, as far as it matters to who writes. Changes the object. */
export function setDefaults(object: KubeObject): void {
  if (object.kind === 'Deployment') {
    const { spec } = object as unknown as WithPods;
    spec.replicas ??= 1;
    spec.strategy ??= { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } };
    spec.template.spec.restartPolicy ??= 'Always';
    for (const container of [...spec.template.spec.containers, ...(spec.template.spec.initContainers ?? [])]) {
      container.imagePullPolicy ??= 'IfNotPresent';
      for (const port of container.ports ?? []) port.protocol ??= 'TCP';
    }
  } else if (object.kind === 'Service') {
    const { spec } = object as unknown as ServiceLike;
    spec.type ??= 'ClusterIP';
    spec.clusterIP ??= '10.0.0.1';
    for (const port of spec.ports ?? []) port.protocol ??= 'TCP';
  }
}
