import type { AnyKind } from '../../constructs/kind/kind';
import { HASH_ANNOTATION, OWNER_UID_ANNOTATION, SHARED_KEY_ANNOTATION } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { groupOf } from '../../constructs/kube/resource-type';
import { LruMap } from '../collections/lru-map';
import { unionOf, type FieldSet, type UnownedFields } from './field-ownership';
import { childEntry, intern, metadataOnly, type CacheEntry, type CacheEvent, type Projection } from './projection';

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
  return (object) => (belongs(object) ? projection.entryOf(object) : metadataOnly(object));
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
 * of which somebody else has written a rendered field is kept whole, so that a dry run can be compared with it;
 * if only an item of a list is in doubt, the child is read then.
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
  /** For the few children that a dry run was made for. */
  private readonly verdictByHash = new Map<string, DryRunVerdict>();

  /**
   * By the UID of a child: what was removed from it although another manager owned it too. If it comes back,
   * the other manager contests it.
   */
  private readonly removedByUid = new LruMap<FieldSet>();

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
    this.verdictByHash.delete(hash);
  }

  /**
   * An observer for a cache of children: drops the shapes of children that no longer exist. When the response
   * to a write was lost, only this event contains the former hash.
   */
  onCacheEvent({ type, object, old }: CacheEvent): void {
    if (type === 'deleted') {
      this.forget(hashOf(object));
      this.removedByUid.delete(object.object.metadata.uid ?? '');
    }
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

  /** Remembers what the last dry run of a child has shown. */
  registerVerdict(hash: string, verdict: DryRunVerdict): void {
    if (this.byHash.has(hash)) this.verdictByHash.set(hash, verdict);
  }

  /** What the last dry run of a child has shown. */
  verdict(hash: string): DryRunVerdict | undefined {
    return this.verdictByHash.get(hash);
  }

  /** Remembers fields that are removed from a child although another manager owns them. */
  registerRemoved(uid: string, fields: FieldSet): void {
    const before = this.removedByUid.get(uid);
    this.removedByUid.set(uid, before === undefined ? fields : unionOf(before, fields));
  }

  /** The fields that were removed from a child although another manager owned them. */
  removedFields(uid: string): FieldSet | undefined {
    return this.removedByUid.get(uid);
  }

  /** The entry of a child as the server sent it, with its managedFields; reduced as {@link project} says. */
  entryOf(child: KubeObject): CacheEntry {
    return this.project(this.wholeEntryOf(child));
  }

  /** The entry of a child as the server sent it, with its managedFields; not reduced. */
  wholeEntryOf(child: KubeObject): CacheEntry {
    return childEntry(child, this.removedByUid.get(child.metadata.uid ?? ''));
  }

  /**
   * A child reduced to the fields of its shape; the child itself when its shape is not known, or when somebody
   * else has written a field of its shape.
   */
  project(entry: CacheEntry): CacheEntry {
    const shapes = this.shapesOf(entry.object);
    if (shapes === undefined || entry.isReduced) return entry;
    const { unowned: all, ...facts } = entry.facts;
    const unowned = unownedIn(shapes.rendered, all);
    const kept = all === unowned ? entry.facts : intern(unowned === undefined ? facts : { ...facts, unowned });
    if (namesField(shapes.rendered, unowned)) return { object: entry.object, facts: kept };
    return { object: keep(entry.object, shapes.kept) as KubeObject, facts: kept, isReduced: true };
  }

  /** A child with the fields of its shape only; the child itself when its shape is not known. */
  reduce(child: KubeObject): KubeObject {
    const shapes = this.shapesOf(child);
    return shapes === undefined ? child : (keep(child, shapes.kept) as KubeObject);
  }

  private shapesOf(object: KubeObject): Shapes | undefined {
    const hash = hashOf({ object });
    return hash === undefined ? undefined : this.byHash.get(hash);
  }
}

/** The result of a dry run of the apply of a child. */
interface DryRunVerdict {
  /** A digest of the child and of what was to be applied. */
  readonly of: string;
  /** Whether the apply would have changed the child. */
  readonly changes: boolean;
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
    paused: 'all',
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

/** The fields of a shape that are not owned, and the metadata. */
function unownedIn(shape: Shape | undefined, unowned: UnownedFields | undefined, depth = 0): UnownedFields | undefined {
  if (unowned === undefined || unowned === true || shape === undefined)
    return shape === undefined ? undefined : unowned;
  if (shape === 'all') return unowned;
  const kept: Record<string, UnownedFields> = {};
  for (const step in unowned) {
    const inner = isList(shape) ? shape.items : Object.hasOwn(shape, step) ? shape[step] : undefined;
    const found = depth === 0 && step === 'metadata' ? unowned[step] : unownedIn(inner, unowned[step], depth + 1);
    if (found !== undefined) kept[step] = found;
  }
  return Object.keys(kept).length === 0 ? undefined : kept;
}

/**
 * Whether a field is not owned. Metadata is kept anyhow. Items of lists are mostly others' own, and would make
 * many children be kept whole; if one of ours is lost, the child is read when it matters.
 */
function namesField(shape: Shape | undefined, unowned: UnownedFields | undefined, depth = 0): boolean {
  if (unowned === undefined || unowned === true) return unowned === true;
  return Object.entries(unowned).some(([step, inner]) => {
    if (depth === 0 && step === 'metadata') return false;
    if (shape === undefined || shape === 'all') return true;
    if (!isList(shape)) return namesField(shape[step], inner, depth + 1);
    return inner !== true && namesField(shape.items, inner, depth + 1);
  });
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
