import type { AnyKind } from '../../constructs/kind/kind';
import { HASH_ANNOTATION, OWNER_UID_ANNOTATION, SHARED_KEY_ANNOTATION } from '../../constructs/kube/envelope';
import type { KubeObject, ObjectMeta } from '../../constructs/kube/kube-object';
import { groupOf } from '../../constructs/kube/resource-type';
import { LruMap } from '../collections/lru-map';

/** What the cache stores for one object. */
export interface CacheEntry {
  readonly object: KubeObject;
  readonly facts: ObjectFacts;
}

/** Facts derived from the parts of an object that are not stored. */
interface ObjectFacts {
  /**
   * True while managedFields contains fields that this operator's POST created and no apply has taken over
   * yet: an entry of manager `kindred`, operation `Update`, no subresource. Such fields would survive when a
   * later apply drops them.
   */
  readonly createdByUpdate: boolean;
  /** The index of that entry in managedFields; absent when the manager has further entries there. */
  readonly updateEntryIndex?: number;
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
  const { managedFields, ...metadata } = object.metadata as WireMeta;
  const facts = managedFields === undefined ? NOT_CREATED_BY_UPDATE : factsOf(object);
  return { object: { ...object, metadata: withoutLastApplied(metadata) }, facts };
}

/**
 * Only apiVersion, kind and the metadata that `stripManagedFields` keeps: for types that are watched but not rendered.
 *
 * @testonly
 */
export function metadataOnly(object: KubeObject): CacheEntry {
  const { object: kept, facts } = stripManagedFields(object);
  return { object: { apiVersion: kept.apiVersion, kind: kept.kind, metadata: kept.metadata }, facts };
}

/** The facts of an object as the server sent it, with its managedFields. */
export function factsOf(object: KubeObject): ObjectFacts {
  let updateEntryIndex = -1;
  let own = 0;
  for (const [i, entry] of ((object.metadata as WireMeta).managedFields ?? []).entries()) {
    if (entry.manager !== FIELD_MANAGER || (entry.subresource ?? '') !== '') continue;
    own++;
    if (entry.operation === 'Update') updateEntryIndex = i;
  }
  if (updateEntryIndex < 0) return NOT_CREATED_BY_UPDATE;
  if (own > 1) return CREATED_BY_UPDATE;
  return (createdByUpdateAt[updateEntryIndex] ??= Object.freeze({ createdByUpdate: true, updateEntryIndex }));
}

/** The field manager whose updates `createdByUpdate` looks for. */
const FIELD_MANAGER = 'kindred';
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const NOT_CREATED_BY_UPDATE: ObjectFacts = Object.freeze({ createdByUpdate: false });
const CREATED_BY_UPDATE: ObjectFacts = Object.freeze({ createdByUpdate: true });
/** Objects whose entry has the same index share their facts. */
const createdByUpdateAt: ObjectFacts[] = [];

interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
}

type WireMeta = ObjectMeta & { readonly managedFields?: readonly ManagedFieldsEntry[] };

function withoutLastApplied(metadata: ObjectMeta): ObjectMeta {
  const { annotations } = metadata;
  if (annotations === undefined || !(LAST_APPLIED in annotations)) return metadata;
  const kept = Object.entries(annotations).filter(([name]) => name !== LAST_APPLIED);
  return { ...metadata, annotations: Object.fromEntries(kept) };
}

/**
 * The projection of a child type. Of objects that belong to one of the kinds, the rendered fields are stored,
 * if they are known. Of all others, which are watched only because their names may conflict, only the
 * metadata is stored.
 */
export function childProjection(kinds: readonly AnyKind[], projection: FieldProjection): Projection {
  const owners = new Set(kinds.map(({ group, kind }) => `${group}/${kind}`));
  const belongs = ({ metadata }: KubeObject): boolean =>
    metadata.annotations?.[OWNER_UID_ANNOTATION] !== undefined ||
    metadata.annotations?.[SHARED_KEY_ANNOTATION] !== undefined ||
    metadata.ownerReferences?.some((owner) => owners.has(`${groupOf(owner)}/${owner.kind}`)) === true;
  const own = (object: KubeObject): CacheEntry => {
    const { object: kept, facts } = stripManagedFields(object);
    return { object: projection.project(kept), facts };
  };
  return (object) => (belongs(object) ? own(object) : metadataOnly(object));
}

/**
 * The shapes of children as they were rendered, by their hash. The cache keeps only the fields of a child
 * that its shape names, and so leaves out what the API server filled in: most of a Deployment.
 *
 * Guarantee: no difference is missed. The comparison with a cached child reads only rendered fields; when the
 * rendered child has another hash than the cached one, it is applied whatever else the cached one contains.
 */
export class FieldProjection {
  private readonly byHash = new Map<string, Shape>();
  /**
   * Children of a kind mostly have the same structure, so that its shape is created and stored once. Where
   * field names are a user's, there are many.
   */
  private readonly byStructure = new LruMap<Shape>(MOST_STRUCTURES);
  /** For the few children that the server stores differently. */
  private readonly storedByHash = new Map<string, KubeObject>();

  /** How many children's shapes are known. */
  get size(): number {
    return this.byHash.size;
  }

  /**
   * Stores the shape of a child.
   *
   * @param hash the child's fingerprint, see {@link HASH_ANNOTATION}
   * @returns whether it was new
   */
  register(hash: string, rendered: KubeObject): boolean {
    if (this.byHash.has(hash)) return false;
    const body = { ...rendered, metadata: undefined, status: undefined };
    const structure = structureOf(body);
    let shape = this.byStructure.get(structure);
    if (shape === undefined) {
      shape = merge(shapeOf(body), ALWAYS);
      this.byStructure.set(structure, shape);
    }
    this.byHash.set(hash, shape);
    return true;
  }

  /** Drops the shape of a child that no longer exists. */
  forget(hash: string | undefined): void {
    if (hash === undefined) return;
    this.byHash.delete(hash);
    this.storedByHash.delete(hash);
  }

  /**
   * An observer for a cache of children: drops the shapes of children that no longer exist. When the response
   * to a write was lost, only this event contains the former hash.
   */
  onCacheEvent({ type, object, old }: CacheEvent): void {
    if (type === 'deleted') this.forget(hashOf(object));
    if (old !== undefined && hashOf(old) !== hashOf(object)) this.forget(hashOf(old));
  }

  /**
   * Stores how the server stores a child, when that differs from what it was sent; undefined when it does
   * not.
   */
  registerStored(hash: string, stored: KubeObject | undefined): void {
    if (stored === undefined) this.storedByHash.delete(hash);
    else this.storedByHash.set(hash, stored);
  }

  /** How the server stores a child, if that is known to differ from what it was sent. */
  storedForm(hash: string): KubeObject | undefined {
    return this.storedByHash.get(hash);
  }

  /** A child reduced to the fields of its shape; the child itself when its shape is not known. */
  project(child: KubeObject): KubeObject {
    const hash = hashOf({ object: child });
    const shape = hash === undefined ? undefined : this.byHash.get(hash);
    if (shape === undefined) return child;
    return keep(child, shape) as KubeObject;
  }
}

/** Which fields of a value are kept: all of it, these fields, or these fields of each item. */
type Shape = 'all' | { readonly [field: string]: Shape } | { readonly items: Shape; readonly list: true };

/** Kept besides the rendered fields: metadata, status and the fields that `childState` reads. */
const ALWAYS: Shape = {
  metadata: 'all',
  status: 'all',
  spec: {
    replicas: 'all',
    progressDeadlineSeconds: 'all',
    updateStrategy: 'all',
    type: 'all',
    clusterIP: 'all',
    completions: 'all',
    parallelism: 'all',
  },
};

/**
 * Maximum number of shared shapes. A shape that is evicted stays with the children that have it, and is
 * created again for others.
 */
const MOST_STRUCTURES = 1_000;

/** Part of the key of a list of ports, which the server fills in when it is not rendered. */
const PART_OF_KEY: Shape = { protocol: 'all' };

// These values come from JSON or from a construct: plain objects, so that `for ... in` visits exactly their
// own fields, without the pairs that `Object.entries` allocates.
type Fields = Readonly<Record<string, unknown>>;

function hashOf({ object: { metadata } }: Pick<CacheEntry, 'object'>): string | undefined {
  return metadata.annotations?.[HASH_ANNOTATION];
}

function shapeOf(value: unknown): Shape {
  if (Array.isArray(value)) {
    const items = value
      .map(shapeOf)
      .reduce<Shape | undefined>((a, b) => (a === undefined ? b : merge(a, b)), undefined);
    return items === undefined ? 'all' : { items: merge(items, PART_OF_KEY), list: true };
  }
  if (typeof value !== 'object' || value === null) return 'all';
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return fields.length === 0 ? 'all' : Object.fromEntries(fields.map(([name, field]) => [name, shapeOf(field)]));
}

/** The names of all fields, as a string; values of one structure have the same shape. */
function structureOf(value: unknown): string {
  if (Array.isArray(value)) return `[${[...new Set(value.map(structureOf))].join()}]`;
  if (typeof value !== 'object' || value === null) return '.';
  let structure = '';
  for (const name in value) {
    const field = (value as Fields)[name];
    if (field !== undefined) structure += `${JSON.stringify(name)}:${structureOf(field)},`;
  }
  return `{${structure}}`;
}

function isList(shape: Shape): shape is { readonly items: Shape; readonly list: true } {
  return typeof shape === 'object' && shape.list === true;
}

function merge(a: Shape, b: Shape): Shape {
  if (a === 'all' || b === 'all') return 'all';
  if (isList(a) || isList(b)) return isList(a) && isList(b) ? { items: merge(a.items, b.items), list: true } : 'all';
  const merged = new Map(Object.entries(a));
  for (const [name, shape] of Object.entries(b)) {
    const own = merged.get(name);
    merged.set(name, own === undefined ? shape : merge(own, shape));
  }
  return Object.fromEntries(merged);
}

function keep(value: unknown, shape: Shape): unknown {
  if (shape === 'all' || typeof value !== 'object' || value === null) return value;
  if (isList(shape)) return Array.isArray(value) ? value.map((item) => keep(item, shape.items)) : value;
  if (Array.isArray(value)) return value;
  const kept: Record<string, unknown> = {};
  for (const name in value) {
    if (Object.hasOwn(shape, name)) kept[name] = keep((value as Fields)[name], shape[name] ?? 'all');
  }
  return kept;
}
