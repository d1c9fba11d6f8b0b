import type { ObjectRef } from '../client/api-client';

/** What a controller reconciles: an object of its kind (`object:`), or the children that objects share under a key (`shared:`). */
export type QueueKey = `object:${string}` | `shared:${string}`;

/** A queue key, taken apart. */
export type Target =
  | { readonly what: 'object'; readonly ref: ObjectRef }
  | { readonly what: 'shared'; readonly group: string; readonly namespace: string | undefined; readonly key: string };

/** The queue key of an object. */
export function objectKey({ namespace, name }: ObjectRef): QueueKey {
  return `object:${namespace ?? ''}/${name}`;
}

/** The queue key of a shared id (see `sharedId`). */
export function sharedQueueKey(id: string): QueueKey {
  return `shared:${id}`;
}

/** Takes a queue key apart. Names and namespaces hold no slash. */
export function targetOf(queueKey: QueueKey): Target {
  const colon = queueKey.indexOf(':');
  const rest = queueKey.slice(colon + 1);
  const slash = rest.indexOf('/');
  const head = rest.slice(0, slash);
  const tail = rest.slice(slash + 1);
  if (queueKey.startsWith('object:')) {
    return { what: 'object', ref: head === '' ? { name: tail } : { namespace: head, name: tail } };
  }
  const second = tail.indexOf('/');
  const namespace = tail.slice(0, second);
  return {
    what: 'shared',
    group: head,
    namespace: namespace === '' ? undefined : namespace,
    key: tail.slice(second + 1),
  };
}
