import type { KubeObject } from './kube-object';

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

/** One string a resource type, for maps and log lines: `apps/v1/Deployment`. */
export function typeKey(type: Pick<ResourceType, 'apiVersion' | 'kind'>): string {
  return `${type.apiVersion}/${type.kind}`;
}
