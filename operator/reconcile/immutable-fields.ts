/**
 * What to do about a child that exists and differs from what is rendered in a field that the API server does
 * not change: only another object can have the new value.
 */

import { groupOf, typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import { kubectlTarget, type ObjectRef } from '../client/api-client';
import type { ApiError, ApiStatus } from '../client/errors';

/**
 * How to have an immutable field changed, in sentences with the commands; undefined when the error is not
 * about immutable fields alone. A new object would be refused for any other problem too, and until that is
 * solved the old child is better than none.
 *
 * @param error the response to an update of the child
 */
export function immutableFieldAdvice(type: ResourceType, ref: ObjectRef, error: ApiError): string | undefined {
  const { causes } = error.status;
  if (causes.length === 0 || !causes.every(isImmutableField)) return undefined;
  const remedy = `delete the ${type.kind}, and the operator makes it anew`;
  const deletion = `kubectl delete ${kubectlTarget(type, ref)}`;
  const orphaning = ORPHANING[typeKey(type)];
  if (orphaning !== undefined)
    return `${DIFFERS}. Take the change back, or ${remedy}: \`${deletion}\` ${orphaning.deleted}; \`${deletion} --cascade=orphan\` ${orphaning.orphaned(inNamespace(ref))}.`;
  const loss = lossOf(type);
  if (loss !== undefined)
    return `${DIFFERS}. Take the change back: deleting the ${type.kind} deletes ${loss}. Only if that may be lost, ${remedy}: \`${deletion}\`.`;
  const after = AFTERWARDS[typeKey(type)];
  return `${DIFFERS}. Take the change back, or ${remedy}: \`${deletion}\`.${after === undefined ? '' : ` ${after}.`}`;
}

const DIFFERS = 'it differs from what is rendered in a field that cannot be changed on an existing object';

/**
 * How the API server words that a field keeps its value. None of these is the response to a new object, and
 * all belong to a field: an admission policy, which may refuse the new object as well, names none.
 *
 * Sources: `pkg/apis/…/validation` of Kubernetes 1.36, `rule` of CRDs, and the usual messages of such rules.
 */
const WORDINGS: readonly RegExp[] = [
  // Selectors, a Job's template, a Secret's type: "field is immutable". ConfigMaps and Secrets: "field is
  // immutable when `immutable` is set". Claims: "spec is immutable after creation except …".
  /\b(is|are) immutable\b/i,
  // "may not change once set" (Service), "cannot change roleRef", "may not be changed in an update.", "pod
  // updates may not change fields other than …", "cannot be changed once it is set" (`immutable()`).
  /\b(cannot|can not|may not|must not) (be )?(changed?|updated|modified)\b/i,
  /\bpod updates may not add or remove containers\b/,
  // A claim cannot shrink.
  /\bcan ?not be less than (previous value|status\.capacity)\b/,
  // "updates to statefulset spec for fields other than … are forbidden".
  /^Forbidden: updates to [\s\S]+ are forbidden/,
  // A transition rule of a CRD without a message of its own.
  /\bfailed rule: [\s\S]*\boldSelf\b/,
];

function isImmutableField({ field = '', message = '' }: ApiStatus['causes'][number]): boolean {
  return field !== '' && WORDINGS.some((wording) => wording.test(message));
}

/** What becomes of the pods of a workload. */
interface Orphaning {
  /** When it is deleted with them. */
  readonly deleted: string;
  /** When it is deleted without them; `where` completes a kubectl command. */
  readonly orphaned: (where: string) => string;
}

const ofPods: Orphaning = {
  deleted: 'ends its pods too',
  orphaned: (where) =>
    `leaves them running: the new one takes over the pods that its selector matches, and you delete the others (\`kubectl get pods${where}\`)`,
};

/** The types whose pods can outlive them. */
const ORPHANING: Readonly<Record<string, Orphaning>> = {
  'apps/v1/Deployment': {
    deleted: 'ends its pods too',
    orphaned: (where) =>
      `leaves them running: the new one takes over the ReplicaSets that its selector matches and replaces their pods step by step; the others run beside it until you delete them (\`kubectl get replicasets.apps${where}\`)`,
  },
  'apps/v1/StatefulSet': {
    deleted:
      'ends its pods too, and deletes their PersistentVolumeClaims if persistentVolumeClaimRetentionPolicy.whenDeleted is Delete',
    orphaned: (where) =>
      `leaves both as they are: the new one takes over the pods that its selector matches, and cannot make one of the name of another pod until you delete that (\`kubectl get pods${where}\`)`,
  },
  'apps/v1/DaemonSet': ofPods,
  'apps/v1/ReplicaSet': ofPods,
  'batch/v1/Job': {
    deleted: 'ends its pods too',
    orphaned: (where) =>
      `lets them finish, and you delete them afterwards (\`kubectl get pods${where}\`). Either way the new one does all of the work again`,
  },
};

/** What is not as before when the child has been made anew. */
const AFTERWARDS: Readonly<Record<string, string>> = {
  'v1/ConfigMap': 'Pods that use it have the new content once they are restarted',
  'v1/Secret': 'Pods that use it have the new content once they are restarted',
  'v1/Service': 'The new one may have another cluster IP, node port and load balancer',
};

const LOSSES: Readonly<Record<string, string>> = {
  'v1/PersistentVolumeClaim': 'its data, unless the reclaim policy of its volume is Retain',
  'v1/PersistentVolume': 'its data, unless its reclaim policy is Retain',
  'v1/Namespace': 'everything in it',
};

/** The built-in groups whose objects stand for nothing that is lost with them, but for {@link LOSSES}. */
const HARMLESS_GROUPS: ReadonlySet<string> = new Set([
  ...['', 'apps', 'autoscaling', 'batch', 'coordination.k8s.io', 'discovery.k8s.io', 'networking.k8s.io'],
  ...['node.k8s.io', 'policy', 'rbac.authorization.k8s.io', 'scheduling.k8s.io', 'storage.k8s.io'],
]);

/** What may be lost with an object: nobody here knows what a custom resource stands for. */
function lossOf(type: ResourceType): string | undefined {
  const known = LOSSES[typeKey(type)];
  if (known !== undefined || HARMLESS_GROUPS.has(groupOf(type))) return known;
  return 'what it stands for, such as data or machines';
}

function inNamespace({ namespace }: ObjectRef): string {
  return namespace === undefined ? '' : ` --namespace=${namespace}`;
}
