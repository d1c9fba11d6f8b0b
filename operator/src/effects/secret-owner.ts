import { OWNER_UID_ANNOTATION, PREFIX, STATE_FINALIZER, ownerReference } from '../../../constructs/core/envelope';
import type { KubeObject, OwnerReference } from '../../../constructs/core/kube-object';

/**
 * On a Secret that has no owner because its owner asks for that. One without this mark whose owner reference is missing has lost it to somebody
 * else: to the garbage collector, when its owner was deleted with `--cascade=orphan`.
 */
export const RETAINED_ANNOTATION = `${PREFIX}retained`;

/**
 * On the Secret of an owner that goes with `--cascade=orphan`: it was let go, so what the owner did stays, although neither of the two tells of
 * that any more.
 */
const ORPHANED_ANNOTATION = `${PREFIX}orphaned`;

/** A Secret as the API has it. */
export interface Secret extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** A body over what stands: labels, annotations and finalizers of others stay, and so does whether it has an owner. */
export function merged(before: Secret, body: Secret): Secret {
  const { finalizers = [], annotations, deletionTimestamp } = before.metadata;
  // The server refuses new finalizers on what is being deleted.
  const more = deletionTimestamp === undefined ? (body.metadata.finalizers ?? []) : [];
  const uid = body.metadata.annotations?.[OWNER_UID_ANNOTATION] ?? '';
  const metadata = {
    ...before.metadata,
    labels: { ...before.metadata.labels, ...body.metadata.labels },
    annotations: { ...annotations, [OWNER_UID_ANNOTATION]: uid },
    finalizers: [...new Set([...finalizers, ...more])],
  };
  return { ...body, metadata };
}

/** Without an owner, as that asks for; itself when it is so already, as with the next two. */
export function retained(owner: KubeObject, secret: Secret): Secret {
  if (isRetained(secret)) return ownerless(owner, secret);
  const { metadata } = ownerless(owner, secret);
  return {
    ...secret,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [RETAINED_ANNOTATION]: 'true' } },
  };
}

/** With its owner. */
export function ownedBy(owner: KubeObject, secret: Secret): Secret {
  const { ownerReferences: before = [], annotations: standing } = secret.metadata;
  const isOwned = before.some(({ uid }) => uid === owner.metadata.uid);
  if (isOwned && !isRetained(secret)) return secret;
  const annotations = { ...standing };
  Reflect.deleteProperty(annotations, RETAINED_ANNOTATION);
  const { ownerReferences: others = [] } = ownerless(owner, secret).metadata;
  // Not a controller's: nothing renders it, so nothing may prune it.
  const ownerReferences = isOwned ? before : [...others, ownerReference(owner)];
  return { ...secret, metadata: { ...secret.metadata, annotations, ownerReferences } };
}

/** Without this owner; others stay. */
export function ownerless(owner: KubeObject, secret: Secret): Secret {
  if (!refersTo(owner, secret)) return secret;
  const { ownerReferences = [] } = secret.metadata;
  const others = ownerReferences.filter((reference) => !isReferenceTo(owner, reference));
  return { ...secret, metadata: { ...secret.metadata, ownerReferences: others } };
}

/** Without this owner, and marked as what stays of it; itself when it is so already. */
export function orphaned(owner: KubeObject, secret: Secret): Secret {
  if (wasOrphaned(secret)) return ownerless(owner, secret);
  const { metadata } = ownerless(owner, secret);
  const annotations = { ...metadata.annotations, [ORPHANED_ANNOTATION]: 'true' };
  return { ...secret, metadata: { ...metadata, annotations } };
}

/** Whether {@link orphaned} marked it. */
export function wasOrphaned({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[ORPHANED_ANNOTATION] === 'true';
}

/** Whether it has this owner, in whichever life. */
export function refersTo(owner: KubeObject, { metadata: { ownerReferences = [] } }: KubeObject): boolean {
  return ownerReferences.some((reference) => isReferenceTo(owner, reference));
}

/** By its name, too: after both were restored from a backup, the owner's UID is another. */
function isReferenceTo({ kind, metadata: { name, uid } }: KubeObject, reference: OwnerReference): boolean {
  return reference.uid === uid || (reference.kind === kind && reference.name === name);
}

/** Whether somebody else took its owner off. One that is not held was put there by hand, or restored from a backup, without an owner. */
export function isCutOff(owner: KubeObject, secret: KubeObject): boolean {
  const { finalizers = [] } = secret.metadata;
  return finalizers.includes(STATE_FINALIZER) && !isRetained(secret) && !refersTo(owner, secret);
}

function isRetained({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[RETAINED_ANNOTATION] === 'true';
}

/** Whether it was made for this owner. */
export function isOf(owner: KubeObject, secret: KubeObject): boolean {
  return secret.metadata.annotations?.[OWNER_UID_ANNOTATION] === owner.metadata.uid;
}
