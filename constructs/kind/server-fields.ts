import { HASH_ANNOTATION, OWNER_UID_ANNOTATION, SHARED_KEY_ANNOTATION } from '../kube/envelope';
import { RenderError, formatProblems, propertyPath, type Problem } from '../kube/errors';
import type { KubeObject } from '../kube/kube-object';
import type { ResourceType } from '../kube/resource-type';

/**
 * The fields of `metadata` that only the API server sets. Source: `metav1.ObjectMeta`, "Read-only" and
 * "Populated by the system".
 */
const SERVER_FIELDS = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'managedFields',
] as const;

/** The annotations by which the operator recognizes what it has written. */
const OPERATOR_ANNOTATIONS = [OWNER_UID_ANNOTATION, HASH_ANNOTATION, SHARED_KEY_ANNOTATION] as const;

/**
 * Rejects a rendered child with metadata that only the API server or the operator sets. The server would refuse
 * it at every apply (`resourceVersion`, `uid`, `managedFields`) or ignore it, and the operator's envelope
 * replaces the rest. `status` may be rendered: it is an ordinary field of types without the subresource, and
 * the server ignores it in the others.
 *
 * @param subject the child's owner
 * @throws RenderError
 */
export function checkServerFields(subject: string, type: ResourceType, { metadata }: KubeObject): void {
  const rendered: Readonly<Record<string, unknown>> = { ...metadata };
  const { annotations = {} } = metadata;
  const problems: Problem[] = [
    ...SERVER_FIELDS.filter((field) => rendered[field] !== undefined).map((field) => ({
      path: propertyPath(['metadata', field]),
      message: 'only the API server sets it',
    })),
    ...(metadata.ownerReferences === undefined
      ? []
      : [{ path: 'metadata.ownerReferences', message: 'the operator sets it: the object owns its children' }]),
    ...OPERATOR_ANNOTATIONS.filter((name) => annotations[name] !== undefined).map((name) => ({
      path: propertyPath(['metadata', 'annotations', name]),
      message: 'only the operator sets it',
    })),
  ];
  if (problems.length === 0) return;
  const heading =
    `${type.kind} "${metadata.name}" has metadata that its kind cannot set. Leave it out; of another object's metadata, ` +
    "such as the owner's, copy single labels and annotations only:";
  throw new RenderError(subject, formatProblems(heading, problems));
}
