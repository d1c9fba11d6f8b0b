import type { AnyKind } from '../../constructs/kind/kind';
import {
  FIELD_MANAGER,
  HASH_ANNOTATION,
  OWNER_UID_ANNOTATION,
  SHARED_KEY_ANNOTATION,
} from '../../constructs/kube/envelope';
import type { KubeObject, ObjectMeta } from '../../constructs/kube/kube-object';
import { groupOf } from '../../constructs/kube/resource-type';
import { LruMap } from '../collections/lru-map';
import { isEntryOf, managedFieldsOf, unownedFields, type UnownedFields } from './field-ownership';

/** What the cache stores for one object. */
export interface CacheEntry {
  readonly object: KubeObject;
  readonly facts: ObjectFacts;
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
 *
 * @testonly
 */
export function metadataOnly(object: KubeObject): CacheEntry {
  const { object: kept, facts } = stripManagedFields(object);
  return { object: { apiVersion: kept.apiVersion, kind: kept.kind, metadata: kept.metadata }, facts };
}

/** A child as the server sent it, with its managedFields, as an entry that has all of its fields. */
export function childEntry(child: KubeObject): CacheEntry {
  const unowned = unownedFields(child, FIELD_MANAGER);
  return {
    object: withoutManagedFields(child),
    facts: intern({ ...updateFacts(child), ...(unowned !== undefined && { unowned }) }),
  };
}

function updateFacts(object: KubeObject): ObjectFacts {
  let updateEntryIndex = -1;
  let own = 0;
  for (const [i, entry] of managedFieldsOf(object).entries()) {
    if (!isEntryOf(FIELD_MANAGER, entry)) continue;
    own++;
    if (entry.operation === 'Update') updateEntryIndex = i;
  }
  if (updateEntryIndex < 0) return { createdByUpdate: false };
  return own > 1 ? { createdByUpdate: true } : { createdByUpdate: true, updateEntryIndex };
}

/** The facts of most children are the same, so that equal ones are stored once. */
const internedFacts = new LruMap<ObjectFacts>(1_000);

function intern(facts: ObjectFacts): ObjectFacts {
  const key = JSON.stringify(facts);
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
  return (object) => (belongs(object) ? projection.project(childEntry(object)) : metadataOnly(object));
}

/**
 * The fields that the API server does not store when they are empty: an empty string, list or map, `false`, 0
 * or null. Which ones they are depends on the type: `env.value: ''` is dropped, `storageClassName: ''` is kept,
 * an empty `emptyDir` is kept, empty `annotations` are dropped. So they are learned from what the server stores.
 */
export class DroppedFields {
  /** By type and field: the names of the fields that lead to it, without the keys of list items. */
  private readonly fields = new LruMap<true>();

  has(type: string, field: string): boolean {
    return this.fields.get(`${type}${field}`) !== undefined;
  }

  add(type: string, field: string): void {
    this.fields.set(`${type}${field}`, true);
  }
}

/**
 * The shapes of children as they were rendered, by their hash. The cache keeps only the fields of a child
 * that its shape names, and so leaves out what the API server filled in: most of a Deployment.
 *
 * Guarantee: no difference is missed. The comparison with a cached child reads only rendered fields. A child
 * of which somebody else has written a rendered field is kept whole, so that a dry run can be compared with it.
 * When the rendered child has another hash than the cached one, it is applied whatever else the cached one
 * contains.
 */
export class FieldProjection {
  private readonly byHash = new Map<string, Shapes>();
  /**
   * Children of a kind mostly have the same structure, so that its shape is created and stored once. Where
   * field names are a user's, there are many.
   */
  private readonly byStructure = new LruMap<Shapes>(MOST_STRUCTURES);
  /** For the few children that the server stores differently. */
  private readonly storedByHash = new Map<string, KubeObject>();
  /** See {@link DroppedFields}. */
  readonly dropped = new DroppedFields();
  /** For the few children of which a dry run has shown that an apply changes nothing: their content, as a digest. */
  private readonly settledByHash = new Map<string, string>();

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
    let shapes = this.byStructure.get(structure);
    if (shapes === undefined) {
      const shape = shapeOf(body);
      shapes = { rendered: shape, kept: merge(shape, ALWAYS) };
      this.byStructure.set(structure, shapes);
    }
    this.byHash.set(hash, shapes);
    return true;
  }

  /** Drops the shape of a child that no longer exists. */
  forget(hash: string | undefined): void {
    if (hash === undefined) return;
    this.byHash.delete(hash);
    this.storedByHash.delete(hash);
    this.settledByHash.delete(hash);
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

  /**
   * Remembers that an apply of a child changes nothing while the child has this content.
   *
   * @param content a digest of the child without its status and version
   */
  registerSettled(hash: string, content: string): void {
    if (this.byHash.has(hash)) this.settledByHash.set(hash, content);
  }

  /** Whether an apply of a child is known to change nothing while the child has this content. */
  isSettled(hash: string, content: string): boolean {
    return this.settledByHash.get(hash) === content;
  }

  /**
   * A child reduced to the fields of its shape; the child itself when its shape is not known, or when somebody
   * else has written a field of its shape.
   */
  project(entry: CacheEntry): CacheEntry {
    const shapes = this.shapesOf(entry);
    return shapes === undefined ? entry : { object: keep(entry.object, shapes.kept) as KubeObject, facts: entry.facts };
  }

  /** Reduces a child as {@link project} reduces an entry. */
  reduceLike(entry: CacheEntry, child: KubeObject): KubeObject {
    const shapes = this.shapesOf(entry);
    return shapes === undefined ? child : (keep(child, shapes.kept) as KubeObject);
  }

  private shapesOf(entry: CacheEntry): Shapes | undefined {
    const hash = hashOf(entry);
    const shapes = hash === undefined ? undefined : this.byHash.get(hash);
    return shapes === undefined || names(shapes.rendered, entry.facts.unowned) ? undefined : shapes;
  }
}

/** Which fields of a value are kept: all of it, these fields, or these fields of each item. */
type Shape = 'all' | { readonly [field: string]: Shape } | { readonly items: Shape; readonly list: true };

/** The fields that are rendered, and those that are kept. */
interface Shapes {
  readonly rendered: Shape;
  readonly kept: Shape;
}

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

/** Whether a shape names a field that is not owned. */
function names(shape: Shape, unowned: UnownedFields | undefined): boolean {
  if (unowned === undefined || unowned === true) return unowned === true;
  if (shape === 'all') return false;
  for (const step in unowned) {
    const inner = isList(shape) ? shape.items : Object.hasOwn(shape, step) ? shape[step] : undefined;
    if (inner !== undefined && names(inner, unowned[step])) return true;
  }
  return false;
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
