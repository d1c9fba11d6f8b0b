import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../constructs/kube/kube-object';

/** One entry of `metadata.managedFields`. Source: `metav1.ManagedFieldsEntry`. */
export interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: 'Apply' | 'Update';
  readonly subresource?: string;
  /** RFC 3339, UTC. */
  readonly time?: string;
  readonly fieldsV1?: FieldSet;
  readonly [field: string]: unknown;
}

/**
 * A set of fields in its `FieldsV1` form, nested: `f:` is a field, `k:` an item of a list by its keys, `v:` a
 * member of a set, `.` the value itself, which is left out where it stands alone. So a node without children is
 * a scalar, an empty map, a map or list that the API declares atomic, or one whose contents are all others'.
 */
export interface FieldSet {
  readonly [key: string]: FieldSet;
}

/** The managedFields of an object as the server sent it. */
export function managedFieldsOf(object: KubeObject): readonly ManagedFieldsEntry[] {
  const { managedFields } = object.metadata as { readonly managedFields?: readonly ManagedFieldsEntry[] };
  return managedFields ?? [];
}

/** Whether an entry is a manager's own: an entry of a subresource, such as `scale`, is another writer's. */
export function isEntryOf(manager: string, { manager: name, subresource = '' }: ManagedFieldsEntry): boolean {
  return name === manager && subresource === '';
}

/** The union of two sets of fields. */
export function unionOf(a: FieldSet, b: FieldSet): FieldSet {
  const merged: Record<string, FieldSet> = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const existing = merged[key];
    merged[key] = existing === undefined ? value : unionOf(existing, value);
  }
  return merged;
}

/** Whether a set of an object's fields has any. */
export function hasFields(set: FieldSet): boolean {
  return !isEmpty(set);
}

/** The fields that both sets have; undefined when they share none. */
export function intersectionOf(a: FieldSet, b: FieldSet): FieldSet | undefined {
  return select(
    a,
    (key, inner) => {
      const other = b[key];
      return other === undefined ? undefined : intersectionOf(inner, other);
    },
    isMember(b),
  );
}

/** The fields of a set that another one does not have; undefined when it has them all. */
export function differenceOf(a: FieldSet, b: FieldSet): FieldSet | undefined {
  return select(
    a,
    (key, inner) => {
      const other = b[key];
      return other === undefined ? inner : differenceOf(inner, other);
    },
    !isMember(b),
  );
}

/**
 * The fields of a set that a manifest does not have, as an apply of the manifest would see it; undefined when it
 * has them all.
 *
 * An item of a list is found by its keys. The server sets a key that the manifest leaves out to its default: in
 * the types of Kubernetes that is the protocol TCP. In a custom type the default is not known, so that the
 * manifest has every item of which the other keys are equal.
 */
export function fieldsMissingIn(set: FieldSet, manifest: unknown): FieldSet | undefined {
  if (manifest === undefined || manifest === null) return set;
  return select(set, (key, inner) => fieldsMissingIn(inner, valueOf(key, manifest)), false);
}

/** The fields of a set whose values differ between two states of an object; undefined when none does. */
export function changedFields(set: FieldSet, before: unknown, after: unknown): FieldSet | undefined {
  if (after === undefined || after === null) return set;
  if (isEmpty(set)) return isDeepStrictEqual(before, after) ? undefined : set;
  return select(set, (key, inner) => changedFields(inner, valueOf(key, before), valueOf(key, after)), false);
}

/** The set with one field, whose path consists of names. */
export function setOf(path: readonly string[]): FieldSet {
  return path.reduceRight<FieldSet>((inner, name) => ({ [`f:${name}`]: inner }), EMPTY);
}

/** The path of the first field of a set, as a person reads it. */
export function firstPath(set: FieldSet): string {
  const key = Object.keys(set).find((name) => name !== '.');
  if (key === undefined) return '';
  const name = key.slice(2);
  const parsed: unknown = key.startsWith('f:') ? name : JSON.parse(name);
  const step = key.startsWith('k:') ? Object.values(parsed as object).join() : String(parsed);
  return `${key.startsWith('f:') ? `.${step}` : `[${step}]`}${firstPath(set[key] ?? EMPTY)}`;
}

/** Whether the field itself is in its set, not only fields below it. */
function isMember(set: FieldSet): boolean {
  return isEmpty(set) || set['.'] !== undefined;
}

/**
 * A part of a set.
 *
 * @param below the part of what is below a key that is kept
 * @param keepsMember whether the field itself is kept, if it is in the set
 */
function select(
  set: FieldSet,
  below: (key: string, inner: FieldSet) => FieldSet | undefined,
  keepsMember: boolean,
): FieldSet | undefined {
  const kept: Record<string, FieldSet> = {};
  for (const key in set) {
    if (key === '.') continue;
    const found = below(key, set[key] ?? EMPTY);
    if (found !== undefined) kept[key] = found;
  }
  const isKept = keepsMember && isMember(set);
  if (isEmpty(kept)) return isKept ? EMPTY : undefined;
  return isKept ? { '.': EMPTY, ...kept } : kept;
}

/** The defaults of fields that are keys of lists. Source: `ContainerPort` and `ServicePort`, in both v1. */
const KEY_DEFAULTS: Readonly<Record<string, string>> = { protocol: 'TCP' };

/** What a value has under a key of a set; undefined when it has nothing there. */
function valueOf(key: string, value: unknown): unknown {
  const name = key.slice(2);
  if (key.startsWith('f:'))
    return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
      ? (value as Record<string, unknown>)[name]
      : undefined;
  if (!Array.isArray(value)) return undefined;
  const items: readonly unknown[] = value;
  const wanted: unknown = JSON.parse(name);
  if (key.startsWith('i:')) return items[Number(wanted)];
  if (key.startsWith('v:')) return items.find((item) => isDeepStrictEqual(item, wanted));
  const keys = Object.entries(wanted as object);
  return items.find((item) => {
    const fields = item as Readonly<Record<string, unknown>> | null;
    return keys.every(([field, expected]) => {
      const found = fields?.[field] ?? KEY_DEFAULTS[field];
      return found === undefined || found === expected;
    });
  });
}

/**
 * The fields of an object that a manager does not own: `true` for a value as a whole, otherwise by the names of
 * fields and the indexes of list items.
 */
export type UnownedFields = true | { readonly [step: string]: UnownedFields };

/** Who owns which fields of an object, for one manager. */
export interface OwnedFields {
  /** What the manager owns, by apply or by update. */
  readonly own: FieldSet;
  /** What others own, their status aside. */
  readonly others: FieldSet;
}

/** @param object as the server sent it, with its managedFields */
export function ownedFields(object: KubeObject, manager: string): OwnedFields {
  let own: FieldSet = NOTHING;
  let others: FieldSet = EMPTY;
  for (const entry of managedFieldsOf(object)) {
    const { fieldsV1 = EMPTY } = entry;
    if (isEntryOf(manager, entry)) own = unionOf(own, fieldsV1);
    else if (entry.subresource !== 'status') others = unionOf(others, fieldsV1);
  }
  return { own, others };
}

/**
 * The fields of a live object that a manager owns neither by apply nor by update. The API server takes a field
 * from its managers when another one changes it; of a map or list that is atomic it takes all of it. So a field
 * that a manager wrote and does not own any more has been changed by somebody else.
 *
 * Of the metadata, only the owner references are looked at, which are atomic each: values show every change of
 * labels, annotations and finalizers. The status is not looked at.
 *
 * @returns undefined when the manager owns everything
 */
export function unownedFields(object: KubeObject, { own, others }: OwnedFields): UnownedFields | undefined {
  const {
    apiVersion: _,
    kind: __,
    status: ___,
    metadata,
    ...body
  } = object as KubeObject & { readonly status?: unknown };
  const { ownerReferences } = metadata;
  return unownedIn(ownerReferences === undefined ? body : { ...body, metadata: { ownerReferences } }, own, others);
}

const EMPTY: FieldSet = Object.freeze({});
const NOTHING: FieldSet = Object.freeze({ '.': EMPTY });

function unownedIn(
  value: unknown,
  owned: FieldSet | undefined,
  others: FieldSet | undefined,
): UnownedFields | undefined {
  // After a POST the server lists most empty maps and lists as owned, but not all; nothing in them is another's.
  if (owned === undefined) return isEmpty(value) ? undefined : true;
  if (typeof value !== 'object' || value === null) return undefined;
  // If another manager has something in it, it is not atomic, and nothing in it is this manager's.
  if (isEmpty(owned) && (others === undefined || isEmpty(others))) return undefined;
  let unowned: Record<string, UnownedFields> | undefined;
  const add = (step: string, inner: unknown, key: string): void => {
    const found = inner === undefined ? undefined : unownedIn(inner, owned[key], others?.[key]);
    if (found !== undefined) (unowned ??= {})[step] = found;
  };
  if (Array.isArray(value)) {
    const keyOfItem = keysInSet(owned);
    for (const [i, item] of (value as readonly unknown[]).entries()) add(String(i), item, keyOfItem(item));
  } else {
    for (const name in value) add(name, (value as Record<string, unknown>)[name], `f:${name}`);
  }
  return unowned;
}

/** Whether a value is an empty map or list. */
function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  for (const _ in value) return false;
  return true;
}

/** How the set of a list writes the key of an item. */
export function keysInSet(owned: FieldSet): (item: unknown) => string {
  let sample: string | undefined;
  for (const key in owned) if (key !== '.' && sample === undefined) sample = key;
  if (sample?.startsWith('k:') !== true) return (member) => `v:${goJson(member)}`;
  const names = Object.keys(JSON.parse(sample.slice(2)) as object);
  return (item) => {
    const fields = item as Readonly<Record<string, unknown>> | null;
    let key = '';
    for (const name of names) key += `${key === '' ? '' : ','}"${name}":${goJson(fields?.[name])}`;
    return `k:{${key}}`;
  };
}

const HTML = /[<>&\u2028\u2029]/;

/** JSON as Go's encoding/json writes it, which escapes what HTML gives a meaning. */
function goJson(value: unknown): string {
  const json = JSON.stringify(value);
  if (!HTML.test(json)) return json;
  return json.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
