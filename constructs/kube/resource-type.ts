import type { Condition, KubeObject } from './kube-object';

/** Whether a resource lives in a namespace or in the cluster as a whole. */
export type ResourceScope = 'Namespaced' | 'Cluster';

/**
 * A resource of the Kubernetes API: what a REST path, a watch or an RBAC rule needs to know of it.
 * `T` is the shape in which kinds read such an object back; it is never checked at run time.
 */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** For example `apps/v1`, or `v1` for the core group. */
  readonly apiVersion: string;
  /** For example `Deployment`. */
  readonly kind: string;
  /** The resource's name in REST paths and RBAC rules, for example `deployments`. */
  readonly plural: string;
  readonly scope: ResourceScope;
  /** Carries `T`; never set. */
  readonly __object?: T;
}

/** The API group of a resource; the empty string for the core group. */
export function groupOf(type: Pick<ResourceType, 'apiVersion'>): string {
  const slash = type.apiVersion.indexOf('/');
  return slash < 0 ? '' : type.apiVersion.slice(0, slash);
}

/** The resource as kubectl and CRDs name it: `deployments.apps`, or `services` for the core group. */
export function resourceName(type: Pick<ResourceType, 'apiVersion' | 'plural'>): string {
  const group = groupOf(type);
  return group === '' ? type.plural : `${type.plural}.${group}`;
}

/** A resource type as one string, for maps and log lines: `apps/v1/Deployment`. */
export function typeKey(type: Pick<ResourceType, 'apiVersion' | 'kind'>): string {
  return `${type.apiVersion}/${type.kind}`;
}

/** The status of a workload as `apps/v1` reports it. */
export interface WorkloadObject extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly readyReplicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly conditions?: readonly Condition[];
  };
}

/** What `batch/v1` reports of a CronJob. */
export interface CronJobObject extends KubeObject {
  readonly status?: { readonly lastScheduleTime?: string; readonly active?: readonly unknown[] };
}

function namespaced<T extends KubeObject = KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
): ResourceType<T> {
  return Object.freeze({ apiVersion, kind, plural, scope: 'Namespaced' as const });
}

/**
 * Built-in resources for a kind to own. Any other {@link ResourceType} works as well: a constant of your own,
 * or another kind's `type`.
 */
export const owned = Object.freeze({
  ConfigMap: namespaced('v1', 'ConfigMap', 'configmaps'),
  Secret: namespaced('v1', 'Secret', 'secrets'),
  Service: namespaced('v1', 'Service', 'services'),
  ServiceAccount: namespaced('v1', 'ServiceAccount', 'serviceaccounts'),
  PersistentVolumeClaim: namespaced('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'),
  Deployment: namespaced<WorkloadObject>('apps/v1', 'Deployment', 'deployments'),
  StatefulSet: namespaced<WorkloadObject>('apps/v1', 'StatefulSet', 'statefulsets'),
  DaemonSet: namespaced<WorkloadObject>('apps/v1', 'DaemonSet', 'daemonsets'),
  Job: namespaced('batch/v1', 'Job', 'jobs'),
  CronJob: namespaced<CronJobObject>('batch/v1', 'CronJob', 'cronjobs'),
  HorizontalPodAutoscaler: namespaced('autoscaling/v2', 'HorizontalPodAutoscaler', 'horizontalpodautoscalers'),
  PodDisruptionBudget: namespaced('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets'),
  Ingress: namespaced('networking.k8s.io/v1', 'Ingress', 'ingresses'),
  NetworkPolicy: namespaced('networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies'),
});
