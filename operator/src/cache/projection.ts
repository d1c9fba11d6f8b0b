import type { KubeObject, ObjectMeta } from '../../../constructs/kube/kube-object';

/** What is derived from the parts of an object that are not stored. */
export interface ObjectFacts {
  /**
   * True while managedFields holds fields that this operator's POST created and no apply has taken over yet: an entry of manager
   * `kindred`, operation `Update`, no subresource. Such fields would survive being dropped from an apply.
   */
  readonly createdByUpdate: boolean;
  /** The place of that entry in managedFields, where the manager has no other: then all of it is known. */
  readonly updateAt?: number;
}

/** What the cache stores of one object. */
export interface CacheEntry {
  readonly object: KubeObject;
  readonly facts: ObjectFacts;
}

/** Decides what is stored of an object. It must not change the object it is given. */
export type Projection = (object: KubeObject) => CacheEntry;

/** The field manager whose updates `createdByUpdate` looks for. */
const FIELD_MANAGER = 'kindred';
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const NOT_CREATED_BY_UPDATE: ObjectFacts = Object.freeze({ createdByUpdate: false });
const CREATED_BY_UPDATE: ObjectFacts = Object.freeze({ createdByUpdate: true });
/** Objects whose entry stands in one place share their facts. */
const createdByUpdateAt: ObjectFacts[] = [];

interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
}

type WireMeta = ObjectMeta & { readonly managedFields?: readonly ManagedFieldsEntry[] };

/** The facts of an object as it came from the server, managedFields and all. */
export function factsOf(object: KubeObject): ObjectFacts {
  let updateAt = -1;
  let own = 0;
  for (const [i, entry] of ((object.metadata as WireMeta).managedFields ?? []).entries()) {
    if (entry.manager !== FIELD_MANAGER || (entry.subresource ?? '') !== '') continue;
    own++;
    if (entry.operation === 'Update') updateAt = i;
  }
  if (updateAt < 0) return NOT_CREATED_BY_UPDATE;
  if (own > 1) return CREATED_BY_UPDATE;
  return (createdByUpdateAt[updateAt] ??= Object.freeze({ createdByUpdate: true, updateAt }));
}

/** Everything but managedFields and kubectl's last-applied annotation, which can make up most of an object. */
export function projectMetadata(object: KubeObject): CacheEntry {
  const { managedFields, ...metadata } = object.metadata as WireMeta;
  const facts = managedFields === undefined ? NOT_CREATED_BY_UPDATE : factsOf(object);
  return { object: { ...object, metadata: withoutLastApplied(metadata) }, facts };
}

/** Only apiVersion, kind and the metadata that `projectMetadata` keeps: for types that are watched but not rendered. */
export function metadataOnly(object: KubeObject): CacheEntry {
  const { object: kept, facts } = projectMetadata(object);
  return { object: { apiVersion: kept.apiVersion, kind: kept.kind, metadata: kept.metadata }, facts };
}

function withoutLastApplied(metadata: ObjectMeta): ObjectMeta {
  const { annotations } = metadata;
  if (annotations === undefined || !(LAST_APPLIED in annotations)) return metadata;
  const kept = Object.entries(annotations).filter(([name]) => name !== LAST_APPLIED);
  return { ...metadata, annotations: Object.fromEntries(kept) };
}
