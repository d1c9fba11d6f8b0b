import type { CacheEntry } from './projection';

/** The values under which an entry is indexed. */
export type IndexFunction = (entry: CacheEntry) => readonly string[];

/** A secondary index: from a value to the keys of the entries that have it. */
export class CacheIndex {
  private readonly keysByValue = new Map<string, Set<string>>();

  constructor(private readonly valuesOf: IndexFunction) {}

  /** The keys of the entries that have the value. */
  keys(value: string): Iterable<string> {
    return this.keysByValue.get(value) ?? [];
  }

  /** Applies the change of one entry; `before` is undefined for an addition, `after` for a deletion. */
  change(key: string, before: CacheEntry | undefined, after: CacheEntry | undefined): void {
    const oldValues = before === undefined ? [] : this.valuesOf(before);
    const newValues = after === undefined ? [] : this.valuesOf(after);
    for (const value of oldValues) if (!newValues.includes(value)) this.remove(value, key);
    for (const value of newValues) if (!oldValues.includes(value)) this.add(value, key);
  }

  private add(value: string, key: string): void {
    const keys = this.keysByValue.get(value);
    if (keys === undefined) this.keysByValue.set(value, new Set([key]));
    else keys.add(key);
  }

  private remove(value: string, key: string): void {
    const keys = this.keysByValue.get(value);
    keys?.delete(key);
    if (keys?.size === 0) this.keysByValue.delete(value);
  }
}

/** Indexes an entry under the UIDs of all its owners. */
export function ownerUids(entry: CacheEntry): readonly string[] {
  return entry.object.metadata.ownerReferences?.map((reference) => reference.uid) ?? [];
}

/** The name of the index by UID in the cache of a kind's objects. */
export const UID_INDEX = 'uid';
