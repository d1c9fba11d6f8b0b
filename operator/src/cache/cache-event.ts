import type { CacheEntry } from './projection';

/** A change of the cache, as its handlers see it. Entries are projected and must not be changed. */
export interface CacheEvent {
  readonly type: 'added' | 'updated' | 'deleted';
  /** The state now; for a deletion the last state known. */
  readonly object: CacheEntry;
  /**
   * What was stored before. Absent for an addition, and for an update of which only the result is known (somebody else's change that a
   * write of ours has already been stacked upon): then anything may have changed.
   */
  readonly old?: CacheEntry;
}

/** Called synchronously, in the order of the changes. It must not throw and must not change the cache. */
export type CacheHandler = (event: CacheEvent) => void;
