import type { AnyKind } from '../../constructs/kind/kind';
import { OWNER_UID_ANNOTATION, SHARED_KEY_ANNOTATION } from '../../constructs/kube/envelope';
import type { KubeObject, OwnerReference } from '../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import type { ObjectRef } from '../client/api-client';
import type { CacheView } from '../informer/cache-view';
import { UID_INDEX } from '../informer/indexer';
import type { AwaitedName } from '../reconcile/context';
import { sharedId } from '../reconcile/shared-keys';

/** What a controller reconciles: an object of its kind (`object:`), or the children that objects share under a key (`shared:`). */
export type QueueKey = `object:${string}` | `shared:${string}`;

/** A parsed queue key. */
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

/** Parses a queue key. Names and namespaces contain no slash. */
export function parseQueueKey(queueKey: QueueKey): Target {
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

/**
 * The keys that a child belongs to: the object that controls it, the object whose UID its annotation names
 * (its owner reference may have been removed), its shared key and the objects that own it.
 */
export function keysOfChild(kind: AnyKind, objects: CacheView, child: KubeObject): QueueKey[] {
  const { namespace, ownerReferences = [], annotations } = child.metadata;
  const keys = ownerReferences
    .filter((reference) => refersTo(kind, reference))
    .map(({ name }) => objectKey(kind.scope === 'Namespaced' ? { namespace, name } : { name }));
  const ownerUid = annotations?.[OWNER_UID_ANNOTATION];
  if (keys.length === 0 && ownerUid !== undefined) {
    keys.push(...objects.byIndex(UID_INDEX, ownerUid).map(({ object }) => objectKey(object.metadata)));
  }
  const shared = sharedIdOf(kind, child);
  if (shared !== undefined) keys.unshift(sharedQueueKey(shared));
  return keys;
}

/** The shared id that a child's annotation names, if it is one of the kind's. */
export function sharedIdOf(kind: AnyKind, child: KubeObject): string | undefined {
  const annotation = child.metadata.annotations?.[SHARED_KEY_ANNOTATION];
  if (annotation === undefined) return undefined;
  // A key may contain slashes.
  const [crd, group, ...key] = annotation.split('/');
  if (crd !== kind.crdName || group === undefined || key.length === 0) return undefined;
  return sharedId(group, child.metadata.namespace, key.join('/'));
}

function refersTo(kind: AnyKind, { apiVersion, kind: name }: OwnerReference): boolean {
  return name === kind.kind && apiVersion.startsWith(`${kind.group}/`);
}

/** Which queue keys wait for an event of a name, for example because somebody else's object has it. */
export class AwaitedNames {
  private readonly keysByName = new Map<string, Set<QueueKey>>();
  private readonly namesByKey = new Map<QueueKey, readonly string[]>();
  /**
   * When something last happened to a name, the earliest first; kept while a reconcile runs that began
   * before.
   */
  private readonly happenedAt = new Map<string, number>();
  /** How many running reconciles began at a moment, the earliest first. */
  private readonly begun = new Map<number, number>();
  private moment = 0;

  /** How many names are remembered for running reconciles. */
  get remembered(): number {
    return this.happenedAt.size;
  }

  /**
   * Records that a reconcile begins. Every `begin` is followed by one `end`.
   *
   * @returns the moment, for `set` and `end`
   */
  begin(): number {
    this.begun.set(this.moment, (this.begun.get(this.moment) ?? 0) + 1);
    return this.moment;
  }

  /** Records that a reconcile has ended that began at a moment. */
  end(since: number): void {
    const left = (this.begun.get(since) ?? 0) - 1;
    if (left > 0) this.begun.set(since, left);
    else this.begun.delete(since);
    const [oldest = Infinity] = this.begun.keys();
    for (const [name, moment] of this.happenedAt) {
      if (moment > oldest) return;
      this.happenedAt.delete(name);
    }
  }

  /**
   * Replaces the names that a key waits for.
   *
   * @param since when the reconcile began that found the names
   * @returns whether something has happened to one of the names since
   */
  set(key: QueueKey, awaited: readonly AwaitedName[], since: number): boolean {
    for (const name of this.namesByKey.get(key) ?? []) {
      const keys = this.keysByName.get(name);
      keys?.delete(key);
      if (keys?.size === 0) this.keysByName.delete(name);
    }
    if (awaited.length === 0) {
      this.namesByKey.delete(key);
      return false;
    }
    const names = awaited.map(({ type, ref }) => nameOf(type, ref));
    this.namesByKey.set(key, names);
    for (const name of names) {
      const keys = this.keysByName.get(name) ?? new Set();
      this.keysByName.set(name, keys.add(key));
    }
    return names.some((name) => (this.happenedAt.get(name) ?? 0) > since);
  }

  /** Records that something happened to a name. @returns the keys that wait for it */
  happened(type: ResourceType, ref: ObjectRef): Iterable<QueueKey> {
    if (this.begun.size === 0 && this.keysByName.size === 0) return [];
    const name = nameOf(type, ref);
    if (this.begun.size > 0) {
      // Deleted and set again, so that the order stays that of the moments.
      this.happenedAt.delete(name);
      this.happenedAt.set(name, ++this.moment);
    }
    return this.keysByName.get(name) ?? [];
  }
}

function nameOf(type: ResourceType, { namespace, name }: ObjectRef): string {
  return `${typeKey(type)}/${namespace ?? ''}/${name}`;
}
