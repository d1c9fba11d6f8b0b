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
 * member of a set, `.` the value itself. A node without children is owned as a whole: a scalar, an empty map,
 * or a map or list that the API declares atomic.
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
 * that a manager wrote and does not own any more has been changed by somebody else, and a field that it owns
 * has the value that it wrote.
 *
 * Labels, annotations, owner references and finalizers are the only metadata that is looked at; the status is not.
 *
 * @param object as the server sent it, with its managedFields
 * @returns undefined when the manager owns everything
 */
export function unownedFields(object: KubeObject, manager: string): UnownedFields | undefined {
  const sets = managedFieldsOf(object).flatMap((entry) => (isEntryOf(manager, entry) ? [entry.fieldsV1 ?? {}] : []));
  const owned = sets.reduce(unionOf, EMPTY);
  const {
    apiVersion: _,
    kind: __,
    status: ___,
    metadata,
    ...body
  } = object as KubeObject & { readonly status?: unknown };
  const { labels, annotations, ownerReferences, finalizers } = metadata;
  const written = { labels, annotations, ownerReferences, finalizers };
  const hasMetadata = Object.values(written).some((field) => field !== undefined);
  return unownedIn(hasMetadata ? { ...body, metadata: written } : body, { '.': EMPTY, ...owned });
}

const EMPTY: FieldSet = Object.freeze({});

function unownedIn(value: unknown, owned: FieldSet | undefined): UnownedFields | undefined {
  // After a POST the server lists most empty maps and lists as owned, but not all; nothing in them is another's.
  if (owned === undefined) return isEmpty(value) ? undefined : true;
  if (typeof value !== 'object' || value === null || isEmpty(owned)) return undefined;
  const unowned: Record<string, UnownedFields> = {};
  const add = (step: string, inner: unknown, set: FieldSet | undefined): void => {
    const found = inner === undefined ? undefined : unownedIn(inner, set);
    if (found !== undefined) unowned[step] = found;
  };
  if (Array.isArray(value)) {
    const keyOfItem = itemKeys(owned);
    for (const [i, item] of (value as readonly unknown[]).entries()) add(String(i), item, owned[keyOfItem(item)]);
  } else {
    for (const name in value) add(name, (value as Record<string, unknown>)[name], owned[`f:${name}`]);
  }
  return isEmpty(unowned) ? undefined : unowned;
}

/** Whether a value is an empty map or list. */
function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  for (const _ in value) return false;
  return true;
}

/** How the set of a list writes the key of an item. */
function itemKeys(owned: FieldSet): (item: unknown) => string {
  const sample = Object.keys(owned).find((key) => key !== '.');
  if (sample?.startsWith('k:') !== true) return (member) => goJson('v:', member);
  const names = Object.keys(JSON.parse(sample.slice(2)) as object);
  return (item) => {
    const fields = item as Record<string, unknown> | null;
    return goJson('k:', Object.fromEntries(names.map((name) => [name, fields?.[name]])));
  };
}

/** JSON as Go's encoding/json writes it, which escapes what HTML gives a meaning. */
function goJson(prefix: string, value: unknown): string {
  const json = `${prefix}${JSON.stringify(value)}`;
  return json.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
