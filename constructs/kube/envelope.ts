import type { KubeObject, OwnerReference } from './kube-object';

/** The prefix of all of Kindred's own annotations. */
export const ANNOTATION_PREFIX = 'kindred.dev/';

/** The field manager of everything Kindred applies. */
export const FIELD_MANAGER = 'kindred';

/** The field manager that owns a seeded field until the other writer's first write. */
export const SEED_FIELD_MANAGER = 'kindred-seed';

/** The label of every child. It is no part of its identity: no selector and no pod template has it. */
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
export const MANAGED_BY = 'kindred';

/** Annotations of children, written by the operator. */
export const OWNER_UID_ANNOTATION = `${ANNOTATION_PREFIX}owner-uid`;
export const HASH_ANNOTATION = `${ANNOTATION_PREFIX}hash`;
/** `<kind>.<group>/<shared group>/<key>` of a shared child. */
export const SHARED_KEY_ANNOTATION = `${ANNOTATION_PREFIX}shared-key`;

/**
 * The finalizer of a Secret with the state of an object's effects: whatever deletes the Secret, it exists
 * until the effects have been removed. For example, the garbage collector deletes the Secret at once when its
 * owner is deleted in the foreground.
 */
export const STATE_FINALIZER = `${ANNOTATION_PREFIX}state`;

/** The Secret in an operator's namespace with the key of sealed states. */
export const STATE_KEY_SECRET = 'kindred-state-key';

/**
 * On an object, written by the operator: which of its children with `whenGone: 'keep-gone'` have been current, as
 * JSON of their fingerprints by `<resource>/<name>`. A user who removes it has them created again.
 */
export const COMPLETED_ANNOTATION = `${ANNOTATION_PREFIX}completed`;

/** Annotations that users set on their objects. */
export const PAUSED_ANNOTATION = `${ANNOTATION_PREFIX}paused`;
export const RECONCILE_AT_ANNOTATION = `${ANNOTATION_PREFIX}reconcile-at`;
/**
 * On an existing object with the name of a child: lets the operator adopt it. It has no effect on the owner.
 */
export const ADOPT_ANNOTATION = `${ANNOTATION_PREFIX}adopt`;
/** Drops a kind's finalizer although its effects were not removed. */
export const FORCE_REMOVE_ANNOTATION = `${ANNOTATION_PREFIX}force-remove`;

/**
 * Addresses, separated by commas, of machines of a Cluster that are permanently lost: nothing is removed from
 * them. The spec must no longer contain them.
 */
export const LOST_MACHINES_ANNOTATION = `${ANNOTATION_PREFIX}lost-machines`;

/** Everything that the operator adds to a rendered child. */
export interface Envelope {
  readonly ownerReferences: readonly OwnerReference[];
  /** UID of the one owner; absent on shared children. */
  readonly ownerUid?: string;
  /** Absent on owned children. */
  readonly sharedKey?: string;
  /** Fingerprint of the rendered child. */
  readonly hash: string;
}

/** The reference by which an object owns its children and the garbage collector finds them. */
export function controllerReference(owner: KubeObject): OwnerReference {
  return { ...ownerReference(owner), controller: true, blockOwnerDeletion: true };
}

/** The reference by which an object is one of the owners of a shared child. */
export function ownerReference(owner: KubeObject): OwnerReference {
  const { name, uid } = owner.metadata;
  if (uid === undefined) throw new TypeError(`${owner.kind} ${name} has no uid: it does not stand on a server yet`);
  return { apiVersion: owner.apiVersion, kind: owner.kind, name, uid };
}

/** A rendered child with its envelope, as it is sent to the server. The child itself is not changed. */
export function withEnvelope(child: KubeObject, envelope: Envelope): KubeObject {
  const annotations: Record<string, string> = { ...child.metadata.annotations, [HASH_ANNOTATION]: envelope.hash };
  if (envelope.ownerUid !== undefined) annotations[OWNER_UID_ANNOTATION] = envelope.ownerUid;
  if (envelope.sharedKey !== undefined) annotations[SHARED_KEY_ANNOTATION] = envelope.sharedKey;
  return {
    ...child,
    metadata: {
      ...child.metadata,
      labels: { ...child.metadata.labels, [MANAGED_BY_LABEL]: MANAGED_BY },
      annotations,
      ownerReferences: envelope.ownerReferences,
    },
  };
}
