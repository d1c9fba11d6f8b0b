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

/**
 * The fields of an object that a manager does not own: `true` for a value as a whole, otherwise by the names of
 * fields and the indexes of list items.
 */
export type UnownedFields = true | { readonly [step: string]: UnownedFields };

/**
 * The fields of a live object that a manager owns neither by apply nor by update. The API server takes a field
 * from its managers when another one changes it; of a map or list that is atomic it takes all of it. So a field
 * that a manager wrote and does not own any more has been changed by somebody else.
 *
 * Of the metadata, only the owner references are looked at, which are atomic each: values show every change of
 * labels, annotations and finalizers. The status is not looked at.
 *
 * @param object as the server sent it, with its managedFields
 * @returns undefined when the manager owns everything
 */
export function unownedFields(object: KubeObject, manager: string): UnownedFields | undefined {
  let owned: FieldSet = NOTHING;
  let others: FieldSet = EMPTY;
  for (const entry of managedFieldsOf(object)) {
    const { fieldsV1 = EMPTY } = entry;
    if (isEntryOf(manager, entry)) owned = unionOf(owned, fieldsV1);
    else if (entry.subresource !== 'status') others = unionOf(others, fieldsV1);
  }
  const {
    apiVersion: _,
    kind: __,
    status: ___,
    metadata,
    ...body
  } = object as KubeObject & { readonly status?: unknown };
  const { ownerReferences } = metadata;
  return unownedIn(ownerReferences === undefined ? body : { ...body, metadata: { ownerReferences } }, owned, others);
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
