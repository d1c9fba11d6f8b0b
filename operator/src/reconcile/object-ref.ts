import type { KubeObject } from '../../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import type { ObjectRef } from '../client/api-client';

/** The object's address in the API. */
export function refOf(object: KubeObject): ObjectRef {
  const { name, namespace } = object.metadata;
  return namespace === undefined ? { name } : { name, namespace };
}

/** The UID of an object that came from the server. */
export function uidOf(live: KubeObject): string {
  const { uid } = live.metadata;
  if (uid === undefined) throw new TypeError(`${live.kind} ${live.metadata.name} came from the server without a uid`);
  return uid;
}

/** What a child goes by for the contests while it does not stand: it is another object, with another UID, each time it is created. */
export function addressOf(type: ResourceType, { metadata: { name, namespace = '' } }: KubeObject): string {
  return [typeKey(type), namespace, name].join(' ');
}
