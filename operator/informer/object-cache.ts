import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import { compareResourceVersions, type ObjectRef } from '../client/api-client';
import { stripManagedFields, type CacheEntry, type CacheEvent, type CacheHandler, type Projection } from './projection';
import { CacheIndex, ownerUids, type IndexFunction } from './indexer';
import {
  OwnVersions,
  PendingWrites,
  hidesForeignChange,
  type HidesForeignChange,
  type OwnVersionsOf,
} from './own-writes';

/** Options of an `ObjectCache`. */
export interface ObjectCacheOptions {
  /**
   * Reduces each object to what is stored. It keeps name, namespace, uid and resourceVersion.
   * @default stripManagedFields
   */
  readonly project?: Projection;
  /**
   * True for types of which we write only status and finalizers, such as the kinds themselves: when the
   * response to such a write has another generation, labels or annotations, it contains somebody else's
   * change as well, and its event is raised.
   * @default false
   */
  readonly ownWritesKeepSpec?: boolean;
  /**
   * Called when a handler threw, which is a bug.
   * @default ends the process, as any uncaught exception does
   */
  readonly onHandlerError?: (error: unknown, event: CacheEvent) => void;
  /** Further indexes, by name. */
  readonly indexes?: Readonly<Record<string, IndexFunction>>;
}

/**
 * The objects of one resource type as this process knows them: from the reflector, and from the responses to
 * its own writes.
 *
 * Guarantees:
 * - A stored object is only ever replaced by a newer version; a deleted object never comes back by a late
 *   response.
 * - A write of ours raises no event, neither at `observeWrite` nor when the watch reports it. Somebody else's
 *   change raises one, even when a write of ours already builds on it.
 * - An object that was deleted and created again under the same name is reported as a deletion and an
 *   addition.
 * - Reads see one's own writes.
 *
 * Assumptions: resourceVersions are comparable within the type (KEP-5504); the watch reports changes in
 * order.
 *
 * Caveats:
 * - The response to a write that changed nothing has the version of somebody's last change, whose event then
 *   counts as the write's echo. So write only what differs, and read the response; for kinds, see
 *   `ownWritesKeepSpec`.
 * - With a label selector or a namespace, call `observeWrite` only for objects that the reflector selects.
 */
export class ObjectCache {
  private readonly slots = new Map<string, Slot>();
  private readonly owners = new CacheIndex(ownerUids);
  private readonly indexes = new Map<string, CacheIndex>();
  private readonly handlers = new Set<CacheHandler>();
  private readonly observers = new Set<CacheHandler>();
  private readonly writes: PendingWrites;
  private readonly own = new OwnVersions();
  private readonly hides: HidesForeignChange;
  private readonly onHandlerError: (error: unknown, event: CacheEvent) => void;
  private readonly projection: Projection;
  private seen = '';
  private taken = 0;
  private replacing = false;

  constructor(
    readonly type: ResourceType,
    options: ObjectCacheOptions = {},
  ) {
    this.projection = options.project ?? stripManagedFields;
    this.onHandlerError = options.onHandlerError ?? throwLater;
    this.hides = hidesForeignChange(options.ownWritesKeepSpec ?? false);
    this.writes = new PendingWrites((event) => this.raise(event), this.hides);
    for (const [name, valuesOf] of Object.entries(options.indexes ?? {}))
      this.indexes.set(name, new CacheIndex(valuesOf));
  }

  /** How many objects are stored. */
  get size(): number {
    return this.slots.size;
  }

  /** The highest resourceVersion that the reflector has seen for the type; empty before the first list. */
  get resourceVersion(): string {
    return this.seen;
  }

  /**
   * How many lists were taken over. An object that was created and deleted between the last watched version
   * and a list was never reported.
   */
  get lists(): number {
    return this.taken;
  }

  get(ref: ObjectRef): CacheEntry | undefined {
    return this.slots.get(keyOf(ref))?.entry;
  }

  /** All entries, of one namespace or of all. */
  list(namespace?: string): readonly CacheEntry[] {
    const entries: CacheEntry[] = [];
    for (const { entry } of this.slots.values()) {
      if (namespace === undefined || entry.object.metadata.namespace === namespace) entries.push(entry);
    }
    return entries;
  }

  /** The entries with an owner reference, controller or not, to this UID. */
  byOwner(uid: string): readonly CacheEntry[] {
    return this.find(this.owners, uid);
  }

  /**
   * The entries that a named index has under a value.
   * @throws Error for an index that the options do not name.
   */
  byIndex(name: string, value: string): readonly CacheEntry[] {
    const index = this.indexes.get(name);
    if (index === undefined) {
      const known = [...this.indexes.keys()].join(', ') || 'none';
      throw new Error(
        `The cache of ${this.type.kind} has no index ${JSON.stringify(name)} (it has: ${known}); name it in its options.`,
      );
    }
    return this.find(index, value);
  }

  /** Calls the handler on every change from now on; returns a function that removes it. */
  addEventHandler(handler: CacheHandler): () => void {
    this.handlers.add(handler);
    return () => this.handlers.delete(handler);
  }

  /**
   * As `addEventHandler`, but the observer also receives the echoes of our own tracked writes, and no event
   * is delayed for it.
   */
  addObserver(handler: CacheHandler): () => void {
    this.observers.add(handler);
    return () => this.observers.delete(handler);
  }

  /** The entry that would be stored for an object. */
  project(object: KubeObject): CacheEntry {
    return this.projection(object);
  }

  /**
   * Sends a write and stores the response. If the watch reports the write before its response arrives, the
   * event waits for the response, and is dropped when it is only the write's own echo. Reads are never
   * delayed.
   */
  async trackWrite(ref: ObjectRef, send: () => Promise<KubeObject>): Promise<KubeObject> {
    const key = keyOf(ref);
    this.writes.begin(key);
    let version = '';
    try {
      const object = await send();
      version = versionOf(object);
      this.observeWrite(object);
      return object;
    } finally {
      this.writes.end(key, version);
    }
  }

  /** Stores the response to a write of ours if it is newer than the stored version. Raises no event. */
  observeWrite(object: KubeObject): void {
    const version = versionOf(object);
    const key = keyOf(object.metadata);
    const slot = this.slots.get(key);
    if (slot === undefined) {
      // The watch has passed this version: the object was deleted since.
      if (compareResourceVersions(version, this.seen) <= 0) return;
      const made: Slot = { entry: this.project(object), version, reflected: '' };
      this.own.add(made, { version, key, uid: object.metadata.uid });
      this.insert(key, made);
      return;
    }
    if (compareResourceVersions(version, slot.reflected) <= 0) return;
    const before = slot.entry;
    if (version !== slot.version && !this.hides(before.object, object))
      this.own.add(slot, { version, key, uid: object.metadata.uid });
    if (compareResourceVersions(version, slot.version) <= 0) return;
    this.update(key, slot, this.project(object), version);
    if (!sameUid(before, slot.entry)) slot.replaced ??= before;
  }

  /** Stores an entry in another form, for example once it is known which of its fields are needed. Raises no event. */
  reproject(ref: ObjectRef, project: (entry: CacheEntry) => CacheEntry): void {
    const key = keyOf(ref);
    const slot = this.slots.get(key);
    if (slot !== undefined) this.update(key, slot, project(slot.entry), slot.version);
  }

  /** Applies an ADDED or MODIFIED event of the watch. */
  applyChange(object: KubeObject): void {
    const version = versionOf(object);
    const key = keyOf(object.metadata);
    const before = this.seen;
    this.advance(version);
    const slot = this.slots.get(key);
    if (slot !== undefined) {
      this.change(key, slot, object, version);
    } else if (compareResourceVersions(version, before) > 0) {
      this.insert(key, { entry: this.project(object), version, reflected: version }, 'added');
    }
  }

  /**
   * Applies an ADDED or MODIFIED event of which only the version is known.
   *
   * @returns whether it is the echo of a write of ours whose response is stored: then the event needs no
   * further handling, and `applyChange` must not be called
   */
  applyEcho(version: string): boolean {
    const own = this.own.get(version);
    const slot = own === undefined ? undefined : this.slots.get(own.key);
    if (own === undefined || slot === undefined) return false;
    // Our own string, not `version`, which may be a slice that keeps the whole text of the event in memory.
    this.advance(own.version);
    this.settleReplaced(own.key, slot);
    this.reflect(own.key, slot, own.version, own.uid);
    return true;
  }

  /** Applies a DELETED event of the watch. */
  applyDeletion(object: KubeObject): void {
    const version = versionOf(object);
    const key = keyOf(object.metadata);
    this.advance(version);
    const slot = this.slots.get(key);
    if (slot === undefined) return;
    this.settleReplaced(key, slot);
    if (slot.entry.object.metadata.uid === object.metadata.uid) {
      this.remove(key, slot, this.project(object));
    } else if (compareResourceVersions(version, slot.version) > 0) {
      this.remove(key, slot, slot.entry);
    }
  }

  /** Applies a bookmark: no event up to this version is missing. */
  advance(version: string): void {
    if (compareResourceVersions(version, this.seen) > 0) this.seen = version;
  }

  /**
   * Takes over a list of all objects as of `version`. Newer results of our own writes are kept.
   *
   * A version below the last one means that the server's history was rolled back (etcd was restored): then no
   * stored version counts as newer, and every object raises an event.
   */
  replace(entries: Iterable<CacheEntry>, version: string): void {
    if (compareResourceVersions(version, this.seen) < 0) this.forgetVersions();
    this.replacing = true;
    try {
      const listed = new Set<string>();
      for (const entry of entries) listed.add(this.replaceOne(entry));
      for (const [key, slot] of this.slots) {
        if (listed.has(key)) continue;
        if (compareResourceVersions(slot.version, version) <= 0) this.remove(key, slot, slot.entry);
        else this.settleReplaced(key, slot);
      }
      this.seen = version;
      this.taken++;
    } finally {
      this.replacing = false;
    }
  }

  /**
   * To be called after a rollback of the server's history: everything that is received from now on counts as
   * newer than what is stored. A list has to follow.
   */
  forgetVersions(): void {
    this.seen = '';
    for (const slot of this.slots.values()) {
      slot.version = '';
      slot.reflected = '';
      this.own.forget(slot);
    }
  }

  private replaceOne(entry: CacheEntry): string {
    const key = keyOf(entry.object.metadata);
    const slot = this.slots.get(key);
    const version = versionOf(entry.object);
    if (slot === undefined) this.insert(key, { entry, version, reflected: version }, 'added');
    else this.changeByList(key, slot, entry, version);
    return key;
  }

  private change(key: string, slot: Slot, object: KubeObject, version: string): void {
    this.settleReplaced(key, slot);
    if (compareResourceVersions(version, slot.version) > 0) this.renew(key, slot, this.project(object), version);
    else this.reflect(key, slot, version, object.metadata.uid);
  }

  /** The watch has reached a version that is not newer than the stored one. */
  private reflect(key: string, slot: Slot, version: string, uid: string | undefined): void {
    if (compareResourceVersions(version, slot.reflected) <= 0) return;
    slot.reflected = version;
    const own = this.own.confirm(slot, version);
    if (slot.entry.object.metadata.uid !== uid) return;
    const event: CacheEvent = { type: 'updated', object: slot.entry };
    if (own) this.callAll(this.observers, event);
    else this.notify(key, event);
  }

  /**
   * As `change`, but a list reports only the final state, so that an own version at the end proves nothing.
   */
  private changeByList(key: string, slot: Slot, entry: CacheEntry, version: string): void {
    this.settleReplaced(key, slot);
    if (compareResourceVersions(version, slot.version) > 0) {
      this.renew(key, slot, entry, version);
      return;
    }
    if (compareResourceVersions(version, slot.reflected) <= 0) return;
    slot.reflected = version;
    this.own.confirm(slot, version);
    this.notify(key, { type: 'updated', object: slot.entry });
  }

  private renew(key: string, slot: Slot, entry: CacheEntry, version: string): void {
    const old = slot.entry;
    slot.reflected = version;
    this.own.forget(slot);
    if (sameUid(old, entry)) {
      this.update(key, slot, entry, version);
      this.notify(key, { type: 'updated', object: entry, old });
    } else {
      this.remove(key, slot, old);
      this.insert(key, { entry, version, reflected: version }, 'added');
    }
  }

  private insert(key: string, slot: Slot, raised?: 'added'): void {
    this.slots.set(key, slot);
    this.reindex(key, undefined, slot.entry);
    if (raised !== undefined) this.notify(key, { type: raised, object: slot.entry });
  }

  private update(key: string, slot: Slot, entry: CacheEntry, version: string): void {
    this.reindex(key, slot.entry, entry);
    slot.entry = entry;
    slot.version = version;
  }

  private remove(key: string, slot: Slot, last: CacheEntry): void {
    this.settleReplaced(key, slot);
    this.slots.delete(key);
    this.own.forget(slot);
    this.reindex(key, slot.entry, undefined);
    this.notify(key, { type: 'deleted', object: last, old: slot.entry });
  }

  private settleReplaced(key: string, slot: Slot): void {
    const { replaced } = slot;
    if (replaced === undefined) return;
    slot.replaced = undefined;
    this.notify(key, { type: 'deleted', object: replaced, old: replaced });
  }

  private reindex(key: string, before: CacheEntry | undefined, after: CacheEntry | undefined): void {
    this.owners.change(key, before, after);
    for (const index of this.indexes.values()) index.change(key, before, after);
  }

  private find(index: CacheIndex, value: string): readonly CacheEntry[] {
    const entries: CacheEntry[] = [];
    for (const key of index.keys(value)) {
      const slot = this.slots.get(key);
      if (slot !== undefined) entries.push(slot.entry);
    }
    return entries;
  }

  private notify(key: string, event: CacheEvent): void {
    this.callAll(this.observers, event);
    if (!this.writes.hold(key, event, !this.replacing)) this.raise(event);
  }

  /** A handler that throws must stop neither the cache nor the other handlers. */
  private callAll(handlers: Iterable<CacheHandler>, event: CacheEvent): void {
    for (const handler of handlers) {
      try {
        handler(event);
      } catch (error) {
        this.onHandlerError(error, event);
      }
    }
  }

  private raise(event: CacheEvent): void {
    this.callAll(this.handlers, event);
  }
}

interface Slot extends OwnVersionsOf {
  entry: CacheEntry;
  /** The version of the stored object. */
  version: string;
  /**
   * The newest version of this name that the watch has reported; older than `version` after a write of ours.
   */
  reflected: string;
  /**
   * An object of this name with another UID that is known to be deleted, although the watch has not reported
   * it yet.
   */
  replaced?: CacheEntry | undefined;
}

function keyOf(ref: ObjectRef): string {
  return ref.namespace === undefined ? ref.name : `${ref.namespace}/${ref.name}`;
}

function versionOf(object: KubeObject): string {
  return object.metadata.resourceVersion ?? '';
}

function sameUid(a: CacheEntry, b: CacheEntry): boolean {
  return a.object.metadata.uid === b.object.metadata.uid;
}

function throwLater(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
