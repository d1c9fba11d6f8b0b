import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { jsonCopy } from './requests';

/** One entry of `metadata.managedFields`. */
interface ManagedFieldsEntry {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly fieldsType: 'FieldsV1';
  readonly fieldsV1: FieldsV1;
  readonly subresource?: string;
}

/** The writer of a change, and how it writes. */
export interface FieldManager {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly subresource?: string | undefined;
}

/** Tracks an update, of which the server sees only the result: the writer now owns what differs. */
export function trackUpdate(before: KubeObject | undefined, after: KubeObject, writer: FieldManager): KubeObject {
  const entries = managedFieldsOf(after);
  const part = writer.subresource === 'status' ? 'status' : undefined;
  const now = pathsOf(after, part);
  const changed = now.filter(
    (steps) => before === undefined || !isDeepStrictEqual(valueOf(before, steps), valueOf(after, steps)),
  );
  const gone = before === undefined ? [] : pathsOf(before, part).filter((steps) => valueOf(after, steps) === undefined);
  const mine = entries.filter((entry) => isOf(entry, writer)).flatMap((entry) => pathsIn(entry.fieldsV1));
  const lost = new Set(gone.map(id));
  const kept = new Map(
    [...mine, ...changed].filter((steps) => !lost.has(id(steps))).map((steps) => [id(steps), steps]),
  );
  const rest = disownPaths(entries, writer, new Set([...changed, ...gone].map(id)));
  return withManagedFields(after, replaceEntry(rest, after, writer, [...kept.values()]));
}

/**
 * A server-side apply: fields that the manager applied before and no longer applies are removed, unless
 * another manager owns them too.
 */
export function serverSideApply(live: KubeObject, body: KubeObject, writer: FieldManager, force: boolean): KubeObject {
  const entries = managedFieldsOf(live);
  const wanted = pathsOf(body, writer.subresource);
  const wantedIds = new Set(wanted.map(id));
  const differing = wanted.filter((steps) => !isDeepStrictEqual(valueOf(live, steps), valueOf(body, steps)));
  const others = entries.filter((entry) => !isOf(entry, writer));
  const ownedByOthers = new Set(others.flatMap((entry) => pathsIn(entry.fieldsV1)).map(id));
  const conflicts = differing.filter((steps) => ownedByOthers.has(id(steps)));
  if (conflicts.length > 0 && !force) throw new FieldConflictError(conflicts.map(id).join(', '));
  const result = merged(live, { ...body, metadata: { ...body.metadata, name: live.metadata.name } }) as KubeObject;
  const before = entries.filter((entry) => isOf(entry, writer)).flatMap((entry) => pathsIn(entry.fieldsV1));
  const copy = jsonCopy(result);
  const dropped = before.filter((steps) => !wantedIds.has(id(steps)) && !ownedByOthers.has(id(steps)));
  // Items are removed only with their last owner.
  for (const steps of dropped) removeAt(copy, steps);
  const rest = disownPaths(entries, writer, new Set(differing.map(id)));
  return withManagedFields(copy, replaceEntry(rest, live, writer, wanted));
}

/** Another manager owns a field that is applied with a different value. */
export class FieldConflictError extends Error {}

/** The managedFields of an object. */
export function managedFieldsOf(object: KubeObject): readonly ManagedFieldsEntry[] {
  return (object.metadata as { readonly managedFields?: readonly ManagedFieldsEntry[] }).managedFields ?? [];
}

/** The same object with other managedFields. */
export function withManagedFields(object: KubeObject, entries: readonly ManagedFieldsEntry[]): KubeObject {
  const metadata = { ...object.metadata, managedFields: entries };
  return { ...object, metadata };
}

const id = (steps: FieldPath): string => JSON.stringify(steps);

function isOf(entry: ManagedFieldsEntry, { manager, operation, subresource }: FieldManager): boolean {
  return entry.manager === manager && entry.operation === operation && entry.subresource === subresource;
}

function replaceEntry(
  entries: readonly ManagedFieldsEntry[],
  object: KubeObject,
  writer: FieldManager,
  paths: readonly FieldPath[],
): readonly ManagedFieldsEntry[] {
  const others = entries.filter((entry) => !isOf(entry, writer));
  if (paths.length === 0) return others;
  const { manager, operation, subresource } = writer;
  const entry: ManagedFieldsEntry = {
    manager,
    operation,
    apiVersion: object.apiVersion,
    fieldsType: 'FieldsV1',
    fieldsV1: fieldsV1(paths),
    ...(subresource === undefined ? {} : { subresource }),
  };
  return [...others, entry];
}

/** Removes paths from all entries but the writer's. */
function disownPaths(
  entries: readonly ManagedFieldsEntry[],
  writer: FieldManager,
  taken: ReadonlySet<string>,
): readonly ManagedFieldsEntry[] {
  return entries.flatMap((entry) => {
    if (isOf(entry, writer)) return [entry];
    const left = pathsIn(entry.fieldsV1).filter((steps) => !taken.has(id(steps)));
    return left.length === 0 ? [] : [{ ...entry, fieldsV1: fieldsV1(left) }];
  });
}

/** One step of a field path as `FieldsV1` writes it: `f:` a field, `k:` an item by its keys, `v:` a member of a set, `.` an item itself. */
type FieldPath = readonly string[];

/** A set of field paths in its nested form. */
interface FieldsV1 {
  [step: string]: FieldsV1;
}

/** The paths of all fields of an object, as the server tracks them. */
function pathsOf(object: object, subresource?: string): FieldPath[] {
  const { metadata, status, ...main } = object as Fields;
  if (subresource === 'status') return below(status, 'status', ['f:status']);
  const managed = Object.fromEntries(Object.entries(metadata as Fields).filter(([name]) => !UNMANAGED.has(name)));
  const ofMetadata = Object.keys(managed).length === 0 ? [] : below(managed, 'metadata', ['f:metadata']);
  return [
    ...ofMetadata,
    ...Object.entries(main)
      .filter(([name]) => name !== 'apiVersion' && name !== 'kind')
      .flatMap(([name, value]) => below(value, name, [`f:${name}`])),
  ];
}

function below(value: unknown, field: string, steps: FieldPath): FieldPath[] {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.length > 0) {
    if (field === 'finalizers') return value.map((member) => [...steps, `v:${JSON.stringify(member)}`]);
    const keys = keysOf(field, value[0]);
    if (keys === undefined) return [steps];
    return value.flatMap((item: unknown) => {
      const at = [...steps, keyStep(keys, item)];
      return ATOMIC.has(field) ? [at] : [[...at, '.'], ...below(item, '', at)];
    });
  }
  if (!isFields(value) || Object.keys(value).length === 0 || ATOMIC.has(field)) return [steps];
  return Object.entries(value).flatMap(([name, inner]) => below(inner, name, [...steps, `f:${name}`]));
}

/** The metadata that the server sets itself and no manager owns. */
const UNMANAGED = new Set([
  'creationTimestamp',
  'deletionTimestamp',
  'generation',
  'managedFields',
  'name',
  'namespace',
  'resourceVersion',
  'uid',
]);

/**
 * The keys of keyed lists. Written from the OpenAPI document of Kubernetes 1.36, on purpose independently of
 * the operator's own table.
 */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  conditions: ['type'],
  containers: ['name'],
  env: ['name'],
  initContainers: ['name'],
  ownerReferences: ['uid'],
  volumeMounts: ['mountPath'],
  volumes: ['name'],
};

/** Fields with maps that are atomic, and lists whose items are, from the same document. */
const ATOMIC: ReadonlySet<string> = new Set([
  ...['selector', 'podSelector', 'namespaceSelector', 'labelSelector', 'nodeSelector'],
  ...['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'ownerReferences'],
]);

function keysOf(field: string, item: unknown): readonly string[] | undefined {
  if (field !== 'ports') return KEYS[field];
  const { containerPort, port } = item as Fields;
  if (containerPort !== undefined) return ['containerPort', 'protocol'];
  return port === undefined ? undefined : ['port', 'protocol'];
}

function keyStep(keys: readonly string[], item: unknown): string {
  const values = keys.map((key) => [key, (item as Fields)[key] ?? (key === 'protocol' ? 'TCP' : undefined)]);
  return `k:${JSON.stringify(Object.fromEntries(values))}`;
}

/** The nested form of paths. */
function fieldsV1(paths: readonly FieldPath[]): FieldsV1 {
  const root: FieldsV1 = {};
  for (const steps of paths) {
    let at = root;
    for (const step of steps) at = at[step] ??= {};
  }
  return root;
}

/** The paths of a nested form. */
function pathsIn(set: FieldsV1, above: FieldPath = []): FieldPath[] {
  return Object.entries(set).flatMap(([step, inner]) =>
    Object.keys(inner).length === 0 ? [[...above, step]] : pathsIn(inner, [...above, step]),
  );
}

function itemIn(list: unknown, step: string): unknown {
  if (!Array.isArray(list)) return undefined;
  if (step.startsWith('v:')) return (list as unknown[]).find((member) => `v:${JSON.stringify(member)}` === step);
  const keys = Object.keys(JSON.parse(step.slice(2)) as Fields);
  return (list as unknown[]).find((item) => keyStep(keys, item) === step);
}

/** The value at a path. */
function valueOf(object: unknown, steps: FieldPath): unknown {
  return steps.reduce<unknown>((at, step) => {
    if (step === '.') return at === undefined ? undefined : true;
    return step.startsWith('f:') ? (isFields(at) ? at[step.slice(2)] : undefined) : itemIn(at, step);
  }, object);
}

/** Removes the value at a path from an object, and the maps and lists that are empty then. */
function removeAt(object: unknown, steps: FieldPath): void {
  const [step, ...rest] = steps;
  if (step === undefined || object === undefined) return;
  if (step.startsWith('f:')) {
    const fields = object as Fields;
    const name = step.slice(2);
    if (rest.length > 0) removeAt(fields[name], rest);
    const left = fields[name];
    if (rest.length === 0 || isDeepStrictEqual(left, {}) || isDeepStrictEqual(left, []))
      Reflect.deleteProperty(fields, name);
    return;
  }
  const list = object as unknown[];
  const item = itemIn(list, step);
  if (item === undefined) return;
  if (rest.length === 0 || rest[0] === '.') list.splice(list.indexOf(item), 1);
  else removeAt(item, rest);
}

/**
 * Merges an applied configuration into a live object: maps and keyed lists merge, everything else is
 * replaced.
 */
function merged(live: unknown, applied: unknown, field = ''): unknown {
  if (Array.isArray(applied)) {
    if (field === 'finalizers') return [...new Set([...((live ?? []) as unknown[]), ...(applied as unknown[])])];
    const keys = applied.length === 0 ? undefined : keysOf(field, applied[0]);
    if (keys === undefined) return jsonCopy(applied);
    return mergedItems((live ?? []) as unknown[], applied as unknown[], keys, field);
  }
  if (!isFields(applied)) return applied;
  if (ATOMIC.has(field)) return jsonCopy(applied);
  const result: Fields = isFields(live) ? { ...live } : {};
  for (const [name, value] of Object.entries(applied)) {
    if (value !== undefined) result[name] = merged(result[name], value, name);
  }
  return result;
}

/** The applied items get the order in which they were applied; others keep their places, and new ones go to the end. */
function mergedItems(
  live: readonly unknown[],
  applied: readonly unknown[],
  keys: readonly string[],
  field: string,
): unknown[] {
  const keyOf = (item: unknown): string => keyStep(keys, item);
  const standing = new Map(live.map((item) => [keyOf(item), item]));
  const wanted = new Set(applied.map(keyOf));
  const mergeOne = (item: unknown): unknown =>
    ATOMIC.has(field) ? jsonCopy(item) : merged(standing.get(keyOf(item)), item);
  const queue = applied.filter((item) => standing.has(keyOf(item)));
  const places = live.map((item) => (wanted.has(keyOf(item)) ? mergeOne(queue.shift()) : item));
  return [...places, ...applied.filter((item) => !standing.has(keyOf(item))).map(mergeOne)];
}

type Fields = Record<string, unknown>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
