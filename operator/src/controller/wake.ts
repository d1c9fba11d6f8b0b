import { OWNER_UID_ANNOTATION, SHARED_KEY_ANNOTATION } from '../../../constructs/kube/envelope';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject, OwnerReference } from '../../../constructs/kube/kube-object';
import type { CacheView } from '../cache/cache-view';
import { sharedId } from '../reconcile/shared-states';
import { objectKey, sharedQueueKey, type QueueKey } from './queue-key';

/** The name of the index by UID that the cache of a kind's objects bears. */
export const BY_UID = 'uid';

/**
 * The keys that a child belongs to: the object that controls it, the object whose UID its annotation names (its owner reference may
 * have been stripped), the shared key it stands under and the objects that hold it.
 */
export function keysOfChild(kind: AnyKind, objects: CacheView, child: KubeObject): QueueKey[] {
  const { namespace, ownerReferences = [], annotations } = child.metadata;
  const keys = ownerReferences
    .filter((reference) => refersTo(kind, reference))
    .map(({ name }) => objectKey(kind.scope === 'Namespaced' ? { namespace, name } : { name }));
  const ownerUid = annotations?.[OWNER_UID_ANNOTATION];
  if (keys.length === 0 && ownerUid !== undefined) {
    keys.push(...objects.byIndex(BY_UID, ownerUid).map(({ object }) => objectKey(object.metadata)));
  }
  const shared = sharedKeyOf(kind, child);
  if (shared !== undefined) keys.unshift(sharedQueueKey(shared));
  return keys;
}

/** The shared id that a child's annotation names, if it is one of the kind's. */
export function sharedKeyOf(kind: AnyKind, child: KubeObject): string | undefined {
  const annotation = child.metadata.annotations?.[SHARED_KEY_ANNOTATION];
  if (annotation === undefined) return undefined;
  // A key may hold slashes itself.
  const [crd, group, ...key] = annotation.split('/');
  if (crd !== kind.crdName || group === undefined || key.length === 0) return undefined;
  return sharedId(group, child.metadata.namespace, key.join('/'));
}

function refersTo(kind: AnyKind, { apiVersion, kind: name }: OwnerReference): boolean {
  return name === kind.kind && apiVersion.startsWith(`${kind.group}/`);
}
