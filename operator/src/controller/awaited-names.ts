import { typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import type { ObjectRef } from '../client/api-client';
import type { AwaitedName } from '../reconcile/context';
import type { QueueKey } from './queue-key';

/** Which queue keys wait for something to happen to a name: one that is taken by somebody else's object. */
export class AwaitedNames {
  private readonly keysByName = new Map<string, Set<QueueKey>>();
  private readonly namesByKey = new Map<QueueKey, readonly string[]>();
  /** When something last happened to a name, the earliest first, as long as a reconcile is under way that began before. */
  private readonly happenedAt = new Map<string, number>();
  /** How many reconciles are under way that began at a moment, the earliest first. */
  private readonly begun = new Map<number, number>();
  private moment = 0;

  /** How many names are remembered for reconciles under way. */
  get remembered(): number {
    return this.happenedAt.size;
  }

  /** A reconcile begins. Every `begin` is followed by one `end`. @returns the moment, for `set` and `end` */
  begin(): number {
    this.begun.set(this.moment, (this.begun.get(this.moment) ?? 0) + 1);
    return this.moment;
  }

  /** A reconcile has ended that began at a moment. */
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
   * Replaces what a key waits for.
   *
   * @param since when the reconcile began that found it out
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

  /** Something happens to a name. @returns the keys that wait for it */
  happened(type: ResourceType, ref: ObjectRef): Iterable<QueueKey> {
    if (this.begun.size === 0 && this.keysByName.size === 0) return [];
    const name = nameOf(type, ref);
    if (this.begun.size > 0) {
      // Deleted and set anew, so that the order stays that of the moments.
      this.happenedAt.delete(name);
      this.happenedAt.set(name, ++this.moment);
    }
    return this.keysByName.get(name) ?? [];
  }
}

function nameOf(type: ResourceType, { namespace, name }: ObjectRef): string {
  return `${typeKey(type)}/${namespace ?? ''}/${name}`;
}
