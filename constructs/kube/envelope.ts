import type { KubeObject, OwnerReference } from './kube-object';

/** The domain under which all of Kindred's own annotations stand. */
export const ANNOTATION_PREFIX = 'kindred.dev/';

/** The field manager of everything Kindred applies. */
export const FIELD_MANAGER = 'kindred';

/** The field manager that holds a seeded field between its seeding and its other writer's first write. */
export const SEED_FIELD_MANAGER = 'kindred-seed';

/** The label of every child. Never identity: it stands in no selector and no pod template. */
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
export const MANAGED_BY = 'kindred';

/** Annotations of children, written by the operator. */
export const OWNER_UID_ANNOTATION = `${ANNOTATION_PREFIX}owner-uid`;
export const HASH_ANNOTATION = `${ANNOTATION_PREFIX}hash`;
/** `<kind>.<group>/<shared group>/<key>` of a shared child. */
export const SHARED_KEY_ANNOTATION = `${ANNOTATION_PREFIX}shared-key`;

/**
 * The finalizer of a Secret with the state of an object's effects: whatever deletes the Secret, it stands until what the effects did has been taken
 * away. The garbage collector, for one, deletes all that an object owns at once when the object is deleted in the foreground.
 */
export const STATE_FINALIZER = `${ANNOTATION_PREFIX}state`;

/** Annotations that people set on their objects. */
export const PAUSED_ANNOTATION = `${ANNOTATION_PREFIX}paused`;
export const RECONCILE_AT_ANNOTATION = `${ANNOTATION_PREFIX}reconcile-at`;
/** On an object under a child's name: lets the operator take it over. It means nothing on the object whose child it would become. */
export const ADOPT_ANNOTATION = `${ANNOTATION_PREFIX}adopt`;
/** Drops a kind's finalizer though what its effects did was not taken away. */
export const FORCE_REMOVE_ANNOTATION = `${ANNOTATION_PREFIX}force-remove`;

/**
 * Addresses, separated by commas, of machines of a Cluster that are gone for good: what would have to be removed there is not.
 * They must not be in its spec any more.
 */
export const LOST_MACHINES_ANNOTATION = `${ANNOTATION_PREFIX}lost-machines`;

/** What the operator adds to a rendered child, and nothing else. */
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

/** The reference by which an object holds a shared child. */
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
