import type { ActiveSeed, RenderedChild } from '../../constructs/kind/render';
import { isSecret } from '../../constructs/kind/secret-data';
import { FIELD_MANAGER, SEED_FIELD_MANAGER } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import { refOf, uidOf, type ApiClient } from '../client/api-client';
import { ApiError } from '../client/errors';
import type { CacheView } from '../informer/cache-view';
import {
  differenceOf,
  fieldsMissingIn,
  firstPath,
  hasFields,
  intersectionOf,
  isEntryOf,
  keysInSet,
  managedFieldsOf,
  setOf,
  unionOf,
  type FieldSet,
  type ManagedFieldsEntry,
} from '../informer/field-ownership';
import type { FieldProjection } from '../informer/field-projection';
import type { CacheEntry } from '../informer/projection';
import { itemName } from './diff';
import type { Claim } from './ownership';

/** What an apply of one child works with. */
export interface ApplyContext {
  readonly client: ApiClient;
  readonly cache: CacheView;
  readonly child: RenderedChild;
  /** Classifies a live object that has the child's name. */
  readonly claim: (live: KubeObject) => Claim;
  /** Remembers what is taken from other managers. */
  readonly projection: FieldProjection;
}

/**
 * Prepares the ownership of a child's fields for an apply: what a POST created, and what an earlier version of
 * the operator applied as `stringData` of a Secret, counts as applied, so that fields left out are dropped; what
 * other managers own of that is taken from them, so that it is dropped all the same; and seeded fields get a
 * second manager, so that they stay.
 *
 * Guarantees: an object that has changed since it was cached is classified again.
 *
 * @param cached - the object that was found to be ours and to differ
 * @param applied - the body of the apply that follows
 * @returns the object after these writes, and what was taken from other managers
 * @throws ApiError `Conflict` when the object is no longer as it was cached; TransportError
 */
export async function prepareApply(
  ahead: ApplyContext,
  cached: CacheEntry,
  applied: KubeObject,
): Promise<PreparedObject> {
  const { seeds, type } = ahead.child;
  const { createdByUpdate, ownsStringData = false, isUnwritten = false, coOwned } = cached.facts;
  const isShared = isUnwritten || (coOwned !== undefined && droppedFields(ahead, coOwned, applied) !== undefined);
  const isMoved = createdByUpdate || (ownsStringData && isSecret(type));
  if (!isMoved && !isShared && seeds.length === 0) return { object: cached.object };
  const upgraded = isShared ? undefined : await tryUpgradeManagedFields(ahead, cached);
  const prepared =
    upgraded === undefined ? await upgradeManagedFields(ahead, cached.object, applied) : { object: upgraded };
  let { object } = prepared;
  for (const seed of seeds) object = await transferFieldOwnership(ahead, object, seed);
  return { ...prepared, object };
}

/** An object that is prepared for an apply. */
export interface PreparedObject {
  readonly object: KubeObject;
  /** What was taken from other managers, so that the apply drops it. @default nothing */
  readonly taken?: FieldSet;
}

/**
 * Counts what a POST created as applied, so that the next apply can drop fields. This is the usual case,
 * which needs no read.
 *
 * @returns the object after the patch; undefined when it is not the usual case, or the object was changed or
 * deleted since it was cached
 */
async function tryUpgradeManagedFields(
  ahead: ApplyContext,
  { object, facts }: CacheEntry,
): Promise<KubeObject | undefined> {
  if (facts.updateEntryIndex === undefined) return undefined;
  try {
    return await patchManagedFields(ahead, object, `/${String(facts.updateEntryIndex)}/operation`, 'Apply');
  } catch (error) {
    if (error instanceof ApiError && (error.reason === 'Conflict' || error.code === 404)) return undefined;
    throw error;
  }
}

/** The fields of a set that an apply of a child drops. Seeded fields are left out of it, but stay with the other writer. */
function droppedFields(
  { child }: Pick<ApplyContext, 'child'>,
  set: FieldSet,
  applied: KubeObject,
): FieldSet | undefined {
  const missing = fieldsMissingIn(set, applied);
  return child.seeds.reduce<FieldSet | undefined>(
    (rest, { path }) => (rest === undefined ? undefined : differenceOf(rest, setOf(path))),
    missing,
  );
}

/**
 * The first field that was removed from a child although another manager owned it, and that this manager has
 * written again; undefined when there is none.
 */
export function returnedField(
  ahead: Pick<ApplyContext, 'child' | 'projection'>,
  { object, facts: { coOwned } }: CacheEntry,
  applied: KubeObject,
): string | undefined {
  const removed = coOwned === undefined ? undefined : ahead.projection.removedFields(uidOf(object));
  const back = removed === undefined || coOwned === undefined ? undefined : intersectionOf(coOwned, removed);
  const returned = back === undefined ? undefined : droppedFields(ahead, back, applied);
  return returned === undefined ? undefined : firstPath(returned).replace(/^\./, '');
}

/**
 * Counts what a POST created as applied, even if the manager has applied other fields already, and takes from
 * other managers what the apply that follows drops.
 *
 * @returns the object after the patch
 */
async function upgradeManagedFields(
  ahead: ApplyContext,
  cached: KubeObject,
  applied: KubeObject,
): Promise<PreparedObject> {
  const { client, child } = ahead;
  const current = await client.get(child.type, refOf(cached));
  if (current?.metadata.uid !== uidOf(cached)) throw conflict(child.type, cached, 'was deleted or replaced');
  if (!isStillOurs(ahead, cached, current, applied)) throw conflict(child.type, cached, 'changed hands');
  const entries = managedFieldsOf(current);
  const merged = mergeUpdateIntoApply(entries, FIELD_MANAGER) ?? entries;
  const moved = isSecret(child.type) ? moveStringDataToData(merged, FIELD_MANAGER, current) : merged;
  const result = takeFromOthers(ahead, moved, current, applied);
  const isChanged = result.entries !== entries;
  const object = isChanged ? await patchManagedFields(ahead, current, '', result.entries) : current;
  return { ...(result.taken && { taken: result.taken }), object };
}

/**
 * Takes from other managers the fields of a child that the apply which follows is to drop: the API server
 * removes a field only when no manager owns it any more. What the operator never applied stays with them. If it
 * has never written the child, which somebody agreed to hand over to it, the rendered fields are taken:
 * otherwise the managers before it would own them for ever.
 *
 * @returns the entries after that, and what was taken of what the operator applied before
 */
function takeFromOthers(
  ahead: ApplyContext,
  entries: readonly ManagedFieldsEntry[],
  current: KubeObject,
  applied: KubeObject,
): { readonly entries: readonly ManagedFieldsEntry[]; readonly taken?: FieldSet } {
  const uid = uidOf(current);
  const removed = ahead.projection.removedFields(uid) ?? {};
  const own = entries.filter((entry) => isEntryOf(FIELD_MANAGER, entry));
  const ours = own.reduce((set, { fieldsV1 = {} }) => unionOf(set, fieldsV1), removed);
  let taken: FieldSet | undefined;
  const kept = entries.flatMap((entry) => {
    const { fieldsV1 = {}, subresource } = entry;
    if (own.includes(entry) || subresource === 'status' || !hasFields(fieldsV1)) return [entry];
    const found = own.length > 0 ? sharedDrops(ahead, fieldsV1, ours, applied) : renderedFields(entry, applied);
    if (found === undefined) return [entry];
    taken = taken === undefined ? found : unionOf(taken, found);
    const rest = differenceOf(fieldsV1, found);
    return rest === undefined ? [] : [{ ...entry, fieldsV1: rest }];
  });
  if (taken === undefined) return { entries };
  // As the operator's own, they are dropped even if what is rendered changes before the apply is made.
  const isApply = isOf(FIELD_MANAGER, 'Apply');
  const before = kept.find(isApply) ?? {
    manager: FIELD_MANAGER,
    operation: 'Apply',
    apiVersion: applied.apiVersion,
    fieldsType: 'FieldsV1',
  };
  const ownEntry = { ...before, fieldsV1: unionOf(before.fieldsV1 ?? {}, taken) } satisfies ManagedFieldsEntry;
  const result = { entries: [...kept.filter((entry) => !isApply(entry)), ownEntry] };
  return own.length > 0 ? { ...result, taken } : result;
}

function sharedDrops(ahead: ApplyContext, others: FieldSet, ours: FieldSet, applied: KubeObject): FieldSet | undefined {
  const shared = intersectionOf(others, ours);
  return shared === undefined ? undefined : droppedFields(ahead, shared, applied);
}

/** The fields of an entry that an apply sets; none if the entry names them as another version of the API does. */
function renderedFields({ fieldsV1 = {}, apiVersion }: ManagedFieldsEntry, applied: KubeObject): FieldSet | undefined {
  if (apiVersion !== applied.apiVersion) return undefined;
  const missing = fieldsMissingIn(fieldsV1, applied);
  return missing === undefined ? fieldsV1 : differenceOf(fieldsV1, missing);
}

/**
 * Whether the object, as just read, may still be written. The cached object was classified before, but the
 * following writes have the version of this one: meanwhile the garbage collector may have removed an owner
 * that is being deleted with `--cascade=orphan`, or somebody else may have taken the object over.
 */
function isStillOurs({ claim }: ApplyContext, cached: KubeObject, current: KubeObject, applied: KubeObject): boolean {
  if (claim(current) !== 'ours' || current.metadata.deletionTimestamp !== undefined) return false;
  const missing = missingOwners(cached, applied);
  return missingOwners(current, applied).every((uid) => missing.includes(uid));
}

/** The UIDs of the owners that the live object does not reference yet. */
export function missingOwners(live: KubeObject, applied: KubeObject): readonly string[] {
  const wanted = applied.metadata.ownerReferences ?? [];
  const standing = live.metadata.ownerReferences ?? [];
  return wanted.map(({ uid }) => uid).filter((uid) => !standing.some((owner) => owner.uid === uid));
}

/** Replaces the value at a path below managedFields, if the object has not changed since it was read. */
function patchManagedFields(
  { client, cache, child }: ApplyContext,
  standing: KubeObject,
  path: string,
  value: unknown,
): Promise<KubeObject> {
  // Not `test`: it fails with 422, as an invalid child does; replacing an outdated version fails with
  // Conflict.
  const patch = [
    { op: 'replace', path: '/metadata/uid', value: standing.metadata.uid },
    { op: 'replace', path: '/metadata/resourceVersion', value: standing.metadata.resourceVersion },
    { op: 'replace', path: `/metadata/managedFields${path}`, value },
  ];
  const ref = refOf(standing);
  return cache.trackWrite(ref, () =>
    client.patch(child.type, ref, patch, { type: 'json', fieldManager: FIELD_MANAGER }),
  );
}

/**
 * Gives a field that we own to a second manager before our apply omits it: an omitted field that nobody else
 * owns falls back to its default, which for `replicas` is 1. A value that the seed rejects is replaced, no
 * matter who owns it: the other writer would leave it so. The resourceVersion is the precondition: the other
 * writer may write at any moment.
 *
 * @returns the object after the apply
 */
async function transferFieldOwnership(ahead: ApplyContext, current: KubeObject, seed: ActiveSeed): Promise<KubeObject> {
  const { type, manifest } = ahead.child;
  const live = valueAt(current, seed.path);
  const isKept = live !== undefined && seed.keep(live);
  if (isKept && !ownsField(managedFieldsOf(current), FIELD_MANAGER, seed.path)) return current;
  const value = isKept ? live : valueAt(manifest, seed.path);
  const { name, namespace, uid, resourceVersion } = current.metadata;
  const body: KubeObject = {
    apiVersion: type.apiVersion,
    kind: type.kind,
    ...objectAtPath(seed.path, value),
    metadata: { name, namespace, uid, resourceVersion },
  };
  return ahead.cache.trackWrite(refOf(body), () =>
    ahead.client.apply(type, body, { fieldManager: SEED_FIELD_MANAGER }),
  );
}

/** The error for an object that is no longer as it was cached. */
export function conflict(type: ResourceType, object: KubeObject, happened: string): ApiError {
  const { name } = object.metadata;
  const message = `${type.plural} "${name}" ${happened} while it was being written`;
  return new ApiError({ code: 409, reason: 'Conflict', message, causes: [] }, `GET ${type.plural} ${name}`);
}

/**
 * The managedFields in which what a manager created by POST counts as applied. Without this, a field that the
 * manager's next apply omits would stay, still owned by its former `Update`.
 *
 * @returns undefined when the manager has no `Update` entry
 * @testonly
 */
export function mergeUpdateIntoApply(
  entries: readonly ManagedFieldsEntry[],
  manager: string,
): readonly ManagedFieldsEntry[] | undefined {
  const update = entries.find(isOf(manager, 'Update'));
  if (update === undefined) return undefined;
  const apply = entries.find(isOf(manager, 'Apply'));
  const moved = {
    ...update,
    operation: 'Apply' as const,
    fieldsV1: unionOf(update.fieldsV1 ?? {}, apply?.fieldsV1 ?? {}),
  };
  return [moved, ...entries.filter((entry) => entry !== update && entry !== apply)];
}

/**
 * The managedFields of a Secret in which `data` stands for the `stringData` that a manager applied. The server
 * stores `stringData` in `data`, and tracks only the former: nobody owns the keys that were applied so, and
 * those that an apply leaves out would stay for ever. Who else sets a key owns it, in `data` or in `stringData`,
 * so that the keys without an owner are the manager's.
 *
 * @returns the entries themselves when the manager owns no `stringData`
 * @testonly
 */
export function moveStringDataToData(
  entries: readonly ManagedFieldsEntry[],
  manager: string,
  { data }: KubeObject,
): readonly ManagedFieldsEntry[] {
  const applied = entries.find((entry) => isOf(manager, 'Apply')(entry) && entry.fieldsV1?.['f:stringData']);
  if (applied === undefined) return entries;
  const inOthers = (entry: ManagedFieldsEntry): readonly string[] =>
    entry === applied ? [] : Object.keys(entry.fieldsV1?.['f:stringData'] ?? {});
  const owned = new Set(
    entries.flatMap((entry) => [...Object.keys(entry.fieldsV1?.['f:data'] ?? {}), ...inOthers(entry)]),
  );
  const keys = Object.keys((data as object | undefined) ?? {}).map((key) => `f:${key}`);
  const free = Object.fromEntries(keys.filter((key) => !owned.has(key)).map((key) => [key, {}]));
  const { 'f:stringData': _, ...others } = applied.fieldsV1 ?? {};
  // An empty set of fields would stand for `data` as a whole, other writers' keys included.
  const fieldsV1 = Object.keys(free).length === 0 ? others : unionOf(others, { 'f:data': free });
  return entries.map((entry) => (entry === applied ? { ...applied, fieldsV1 } : entry));
}

function isOf(manager: string, operation: 'Apply' | 'Update') {
  return (entry: ManagedFieldsEntry): boolean => isEntryOf(manager, entry) && entry.operation === operation;
}

/**
 * The manager that a field of a live object was last written by, its subresources included (`scale`); if nobody
 * owns the field, because it was removed, the manager that last wrote the object. Its status does not count.
 *
 * @param path as `ChildComparison` names it
 * @param except managers that are left out
 */
export function lastFieldManager(live: KubeObject, path: string, except: readonly string[]): string | undefined {
  const others = managedFieldsOf(live).filter(
    ({ manager, subresource }) => !except.includes(manager ?? '') && subresource !== 'status',
  );
  const depths = new Map(others.map((entry) => [entry, depthOf(entry.fieldsV1 ?? {}, live, `.${path}`)] as const));
  // A manager may own only the map around a field of another's.
  const deepest = Math.max(...depths.values());
  const owners = others.filter((entry) => deepest > 0 && depths.get(entry) === deepest);
  const last = (owners.length > 0 ? owners : others).reduce<ManagedFieldsEntry | undefined>(
    (a, b) => (a !== undefined && (a.time ?? '') > (b.time ?? '') ? a : b),
    undefined,
  );
  return last?.manager;
}

/** How many steps of a path to a field a set has, if it has the field or a map or list around it; else 0. */
function depthOf(set: FieldSet, value: unknown, path: string, depth = 0): number {
  if (path === '' || Object.keys(set).length === 0) return depth;
  if (typeof value !== 'object' || value === null) return 0;
  const keyOfItem = keysInSet(set);
  const steps = Array.isArray(value)
    ? value.map((item: unknown, i) => [`[${itemName(item, i)}]`, keyOfItem(item), item] as const)
    : Object.entries(value).map(([name, field]) => [`.${name}`, `f:${name}`, field] as const);
  // Names may have dots: the longest is meant.
  const [found] = steps
    .filter(([step]) => path.startsWith(step) && /^($|[.[])/.test(path.slice(step.length)))
    .sort(([a], [b]) => b.length - a.length);
  const below = found === undefined ? undefined : set[found[1]];
  return found === undefined || below === undefined
    ? 0
    : depthOf(below, found[2], path.slice(found[0].length), depth + 1);
}

/**
 * Whether a manager owns a field, by apply or by update.
 *
 * @testonly
 */
export function ownsField(entries: readonly ManagedFieldsEntry[], manager: string, path: readonly string[]): boolean {
  return entries.some((entry) => {
    if (!isEntryOf(manager, entry)) return false;
    let set: FieldSet | undefined = entry.fieldsV1;
    for (const step of path) set = set?.[`f:${step}`];
    return set !== undefined;
  });
}

type Path = readonly string[];

/**
 * The value at a path, or undefined where the path ends early.
 *
 * @testonly
 */
export function valueAt(object: KubeObject, path: Path): unknown {
  let value: unknown = object;
  for (const step of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

/** A copy of an object without the field at a path; the object itself when there is none. */
export function omitPath(object: KubeObject, path: Path): KubeObject {
  return valueAt(object, path) === undefined ? object : (drop(object, path, 0) as KubeObject);
}

function drop(value: unknown, path: Path, depth: number): unknown {
  const step = path[depth] ?? '';
  const { [step]: field, ...rest } = value as Record<string, unknown>;
  return depth === path.length - 1 ? rest : { ...rest, [step]: drop(field, path, depth + 1) };
}

/**
 * An object with nothing but a value at a path.
 *
 * @testonly
 */
export function objectAtPath(path: Path, value: unknown): Record<string, unknown> {
  return path.reduceRight<unknown>((inner, step) => ({ [step]: inner }), value) as Record<string, unknown>;
}
