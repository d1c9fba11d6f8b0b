import type { KubeObject } from '../../../constructs/kube/kube-object';

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

/** A set of fields in its `FieldsV1` form: `f:`, `k:` and `v:` keys, nested. */
export interface FieldSet {
  readonly [key: string]: FieldSet;
}

/** The managedFields of an object as the server sent it. */
export function managedFieldsOf(object: KubeObject): readonly ManagedFieldsEntry[] {
  const { managedFields } = object.metadata as { readonly managedFields?: readonly ManagedFieldsEntry[] };
  return managedFields ?? [];
}

function isOf(manager: string, operation: 'Apply' | 'Update') {
  return (entry: ManagedFieldsEntry): boolean =>
    entry.manager === manager && entry.operation === operation && (entry.subresource ?? '') === '';
}

/**
 * The managedFields with what a manager created by POST counted as applied by it. Without this, a field that the manager's next
 * apply omits would stay, still owned by its former `Update`.
 *
 * @returns undefined when the manager has no `Update` entry
 */
export function updateMovedToApply(
  entries: readonly ManagedFieldsEntry[],
  manager: string,
): readonly ManagedFieldsEntry[] | undefined {
  const update = entries.find(isOf(manager, 'Update'));
  if (update === undefined) return undefined;
  const apply = entries.find(isOf(manager, 'Apply'));
  const moved = {
    ...update,
    operation: 'Apply' as const,
    fieldsV1: union(update.fieldsV1 ?? {}, apply?.fieldsV1 ?? {}),
  };
  return [moved, ...entries.filter((entry) => entry !== update && entry !== apply)];
}

function union(a: FieldSet, b: FieldSet): FieldSet {
  const merged: Record<string, FieldSet> = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const existing = merged[key];
    merged[key] = existing === undefined ? value : union(existing, value);
  }
  return merged;
}

/** The manager that wrote the object itself last, another one than those whose names begin with `except`. */
export function lastManager(entries: readonly ManagedFieldsEntry[], except: string): string | undefined {
  const others = entries.filter(
    ({ manager, subresource }) => manager?.startsWith(except) !== true && (subresource ?? '') === '',
  );
  const last = others.reduce<ManagedFieldsEntry | undefined>(
    (a, b) => (a !== undefined && (a.time ?? '') > (b.time ?? '') ? a : b),
    undefined,
  );
  return last?.manager;
}

/** Whether a manager owns a field, by apply or by update. */
export function owns(entries: readonly ManagedFieldsEntry[], manager: string, path: readonly string[]): boolean {
  return entries.some((entry) => {
    if (entry.manager !== manager || (entry.subresource ?? '') !== '') return false;
    let set: FieldSet | undefined = entry.fieldsV1;
    for (const step of path) set = set?.[`f:${step}`];
    return set !== undefined;
  });
}
