import { OWNER_UID_ANNOTATION, PREFIX, STATE_FINALIZER, ownerReference } from '../../../constructs/kube/envelope';
import type { KubeObject, OwnerReference } from '../../../constructs/kube/kube-object';

/**
 * On a Secret that has no owner because its owner asks for that. One without this mark whose owner reference is missing has lost it to somebody
 * else: to the garbage collector, when its owner was deleted with `--cascade=orphan`.
 */
export const RETAINED_ANNOTATION = `${PREFIX}retained`;

/** On a Secret that stays while its owner goes with `--cascade=orphan`: it tells so until that is gone. */
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

/** Without an owner, as that asks for; itself when it is so already, as with the next ones. */
export function retained(owner: KubeObject, secret: Secret): Secret {
  return marked(ownerless(owner, secret), RETAINED_ANNOTATION);
}

/** Without an owner, as that goes and leaves it behind. */
export function orphaned(owner: KubeObject, secret: Secret): Secret {
  return marked(ownerless(owner, secret), ORPHANED_ANNOTATION);
}

/** With its owner. */
export function ownedBy(owner: KubeObject, secret: Secret): Secret {
  const plain = marked(secret, undefined);
  const { ownerReferences = [] } = secret.metadata;
  if (ownerReferences.some(({ uid }) => uid === owner.metadata.uid)) return plain;
  const { ownerReferences: others = [] } = ownerless(owner, secret).metadata;
  // Not a controller's: nothing renders it, so nothing may prune it.
  return { ...plain, metadata: { ...plain.metadata, ownerReferences: [...others, ownerReference(owner)] } };
}

/** With this mark alone of those that tell why it has no owner. */
function marked(secret: Secret, mark: string | undefined): Secret {
  const { annotations: before = {} } = secret.metadata;
  const marks = [RETAINED_ANNOTATION, ORPHANED_ANNOTATION];
  if (marks.every((each) => (before[each] === 'true') === (each === mark))) return secret;
  const others = Object.fromEntries(Object.entries(before).filter(([name]) => !marks.includes(name)));
  const annotations = mark === undefined ? others : { ...others, [mark]: 'true' };
  return { ...secret, metadata: { ...secret.metadata, annotations } };
}

/** Without this owner; others stay. */
export function ownerless(owner: KubeObject, secret: Secret): Secret {
  if (!refersTo(owner, secret)) return secret;
  const { ownerReferences = [] } = secret.metadata;
  const others = ownerReferences.filter((reference) => !isReferenceTo(owner, reference));
  return { ...secret, metadata: { ...secret.metadata, ownerReferences: others } };
}

/** Whether it has this owner, in whichever life. */
export function refersTo(owner: KubeObject, { metadata: { ownerReferences = [] } }: KubeObject): boolean {
  return ownerReferences.some((reference) => isReferenceTo(owner, reference));
}

/** By its name, too: after both were restored from a backup, the owner's UID is another. */
function isReferenceTo({ kind, metadata: { name, uid } }: KubeObject, reference: OwnerReference): boolean {
  return reference.uid === uid || (reference.kind === kind && reference.name === name);
}

/** Whether it stays while its owner goes. */
export function isLeftBehind(owner: KubeObject, secret: KubeObject): boolean {
  return secret.metadata.annotations?.[ORPHANED_ANNOTATION] === 'true' || isCutOff(owner, secret);
}

/** Whether somebody else took its owner off. One that is not held was put there by hand, or restored from a backup, without an owner. */
export function isCutOff(owner: KubeObject, secret: KubeObject): boolean {
  const { annotations, finalizers = [] } = secret.metadata;
  const isRetained = annotations?.[RETAINED_ANNOTATION] === 'true';
  return finalizers.includes(STATE_FINALIZER) && !isRetained && !refersTo(owner, secret);
}

/** Whether it was made for this owner. */
export function isOf(owner: KubeObject, secret: KubeObject): boolean {
  return secret.metadata.annotations?.[OWNER_UID_ANNOTATION] === owner.metadata.uid;
}
