import { FIELD_MANAGER } from '../../constructs/kube/envelope';
import type { KubeObject, ObjectMeta } from '../../constructs/kube/kube-object';
import { LruMap } from '../collections/lru-map';
import {
  hasFields,
  intersectionOf,
  isEntryOf,
  managedFieldsOf,
  ownedFields,
  unionOf,
  unownedFields,
  type FieldSet,
  type OwnedFields,
  type UnownedFields,
} from './field-ownership';

/** What the cache stores for one object. */
export interface CacheEntry {
  readonly object: KubeObject;
  readonly facts: ObjectFacts;
  /** True when the object has only the fields of its shape, see {@link FieldProjection}. */
  readonly isReduced?: true;
}

/** Facts derived from the parts of an object that are not stored: its managedFields. */
interface ObjectFacts {
  /**
   * True while managedFields contains fields that this operator's POST created and no apply has taken over
   * yet: an entry of manager `kindred`, operation `Update`, no subresource. Such fields would survive when a
   * later apply drops them.
   */
  readonly createdByUpdate: boolean;
  /** The index of that entry in managedFields; absent when the manager has further entries there. */
  readonly updateEntryIndex?: number;
  /** The fields that the operator does not own. Known of children only; absent when it owns all of them. */
  readonly unowned?: UnownedFields;
  /**
   * The fields that other managers own as well as the operator, and those that the operator has removed and that
   * exist again. Known of children only; absent when there are none.
   */
  readonly coOwned?: FieldSet;
  /** True when no entry of managedFields is the operator's: it has never written the object. */
  readonly isUnwritten?: true;
  /** True while this operator owns `stringData`, which only earlier versions of it applied. */
  readonly ownsStringData?: true;
}

/** Reduces an object to what is stored. It must not change the object that it is given. */
export type Projection = (object: KubeObject) => CacheEntry;

/** A change of the cache, as its handlers receive it. Entries are projected and must not be changed. */
export interface CacheEvent {
  readonly type: 'added' | 'updated' | 'deleted';
  /** The current state; for a deletion the last known state. */
  readonly object: CacheEntry;
  /**
   * The entry before. Absent for an addition, and for an update of which only the result is known (somebody
   * else's change on which a write of ours already builds): then anything may have changed.
   */
  readonly old?: CacheEntry;
}

/** Called synchronously, in the order of the changes. It must not throw and must not change the cache. */
export type CacheHandler = (event: CacheEvent) => void;

/** Everything but managedFields and kubectl's last-applied annotation, which can make up most of an object. */
export function stripManagedFields(object: KubeObject): CacheEntry {
  return { object: withoutManagedFields(object), facts: intern(updateFacts(object)) };
}

/**
 * Only apiVersion, kind and the metadata that `stripManagedFields` keeps: for types that are watched but not rendered.
 */
export function metadataOnly(object: KubeObject): CacheEntry {
  const { object: kept, facts } = stripManagedFields(object);
  return { object: { apiVersion: kept.apiVersion, kind: kept.kind, metadata: kept.metadata }, facts };
}

/**
 * A child as the server sent it, with its managedFields, as an entry that has all of its fields.
 *
 * @param removed fields that the operator has removed from the child, though another manager owned them too
 */
export function childEntry(child: KubeObject, removed?: FieldSet): CacheEntry {
  const fields = ownedFields(child, FIELD_MANAGER);
  const unowned = unownedFields(child, fields);
  const coOwned = contestedFields(fields, removed);
  return {
    object: withoutManagedFields(child),
    facts: intern({
      ...updateFacts(child),
      ...(unowned !== undefined && { unowned }),
      ...(coOwned !== undefined && { coOwned }),
    }),
  };
}

/** See {@link ObjectFacts.coOwned}. */
function contestedFields({ own, others }: OwnedFields, removed: FieldSet | undefined): FieldSet | undefined {
  const shared = hasFields(others) ? intersectionOf(others, own) : undefined;
  if (removed === undefined) return shared;
  // The operator owns such a field itself when its removal was interrupted.
  const back = intersectionOf(removed, unionOf(own, others));
  return shared === undefined || back === undefined ? (shared ?? back) : unionOf(shared, back);
}

function updateFacts(object: KubeObject): ObjectFacts {
  let updateEntryIndex = -1;
  let own = 0;
  let ownsStringData = false;
  for (const [i, entry] of managedFieldsOf(object).entries()) {
    if (!isEntryOf(FIELD_MANAGER, entry)) continue;
    own++;
    if (entry.operation === 'Update') updateEntryIndex = i;
    if (entry.fieldsV1?.['f:stringData'] !== undefined) ownsStringData = true;
  }
  if (own === 0) return { createdByUpdate: false, isUnwritten: true };
  if (ownsStringData) return { createdByUpdate: updateEntryIndex >= 0, ownsStringData };
  if (updateEntryIndex < 0) return { createdByUpdate: false };
  return own > 1 ? { createdByUpdate: true } : { createdByUpdate: true, updateEntryIndex };
}

/** The facts of most children are the same, so that equal ones are stored once. */
const internedFacts = new LruMap<ObjectFacts>(1_000);
/** Longer ones, in characters, belong to objects that are like no other. */
const LONGEST_INTERNED = 4_096;

/** @returns the same facts, or equal ones that are stored already */
export function intern(facts: ObjectFacts): ObjectFacts {
  const key = JSON.stringify(facts);
  if (key.length > LONGEST_INTERNED) return facts;
  const known = internedFacts.get(key);
  if (known === undefined) internedFacts.set(key, facts);
  return known ?? facts;
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata as ObjectMeta & { readonly managedFields?: unknown };
  return { ...object, metadata: withoutLastApplied(metadata) };
}

function withoutLastApplied(metadata: ObjectMeta): ObjectMeta {
  const { annotations } = metadata;
  if (annotations === undefined || !(LAST_APPLIED in annotations)) return metadata;
  const kept = Object.entries(annotations).filter(([name]) => name !== LAST_APPLIED);
  return { ...metadata, annotations: Object.fromEntries(kept) };
}
