/** Any Kubernetes object, as its JSON is sent by the API. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** The part of `metadata` that Kindred reads or writes. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

/** One entry of `metadata.ownerReferences`. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** True on the one reference whose owner manages the object. */
  readonly controller?: boolean;
  /** True: a foreground deletion of the owner waits for this object. */
  readonly blockOwnerDeletion?: boolean;
}

/**
 * One entry of `status.conditions`.
 * Source: KEP-1623, `metav1.Condition`.
 */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** CamelCase, for machines. */
  readonly reason: string;
  /** For people. */
  readonly message: string;
  /** RFC 3339 time at which `status` last changed. */
  readonly lastTransitionTime: string;
  /** When status, reason or message last changed; only if the kind sets `lastUpdateTime`. */
  readonly lastUpdateTime?: string;
  /** `metadata.generation` of the object that the condition was computed from. */
  readonly observedGeneration?: number;
}

/** A value that JSON can carry. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A JSON object. */
export type JsonObject = { [key: string]: Json };

/** Whether a JSON value is an object: no list, and not null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
