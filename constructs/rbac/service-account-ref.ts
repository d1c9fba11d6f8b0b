import type { k8s } from 'cdk8s-plus-27';

/** The ServiceAccount that a role is bound to. It need not stand yet: RBAC binds names. */
export interface ServiceAccountRef {
  readonly name: string;
  readonly namespace: string;
}

/** The account as the subject of a binding. */
export function subjectOf({ name, namespace }: ServiceAccountRef): k8s.Subject {
  return { kind: 'ServiceAccount', name, namespace };
}
