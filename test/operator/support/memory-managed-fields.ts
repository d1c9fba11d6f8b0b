import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { fieldsV1, merged, pathsIn, pathsOf, removeAt, valueOf, type FieldsV1, type Steps } from './memory-field-set';
import { wireCopy } from './wire-copy';

/** One entry of `metadata.managedFields`. */
export interface Entry {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly fieldsType: 'FieldsV1';
  readonly fieldsV1: FieldsV1;
  readonly subresource?: string;
}

/** Who writes, and how. */
export interface Writer {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly subresource?: string | undefined;
}

/** Another manager owns a field that is applied with another value. */
export class FieldConflict extends Error {}

/** The managedFields of an object. */
export function entriesOf(object: KubeObject): readonly Entry[] {
  return (object.metadata as { readonly managedFields?: readonly Entry[] }).managedFields ?? [];
}

/** The same object with other managedFields. */
export function withEntries(object: KubeObject, entries: readonly Entry[]): KubeObject {
  const metadata = { ...object.metadata, managedFields: entries };
  return { ...object, metadata };
}

const id = (steps: Steps): string => JSON.stringify(steps);

function isOf(entry: Entry, { manager, operation, subresource }: Writer): boolean {
  return entry.manager === manager && entry.operation === operation && entry.subresource === subresource;
}

function setOf(
  entries: readonly Entry[],
  object: KubeObject,
  writer: Writer,
  paths: readonly Steps[],
): readonly Entry[] {
  const others = entries.filter((entry) => !isOf(entry, writer));
  if (paths.length === 0) return others;
  const { manager, operation, subresource } = writer;
  const entry: Entry = {
    manager,
    operation,
    apiVersion: object.apiVersion,
    fieldsType: 'FieldsV1',
    fieldsV1: fieldsV1(paths),
    ...(subresource === undefined ? {} : { subresource }),
  };
  return [...others, entry];
}

/** Takes paths away from everybody but the writer. */
function takenFrom(entries: readonly Entry[], writer: Writer, taken: ReadonlySet<string>): readonly Entry[] {
  return entries.flatMap((entry) => {
    if (isOf(entry, writer)) return [entry];
    const left = pathsIn(entry.fieldsV1).filter((steps) => !taken.has(id(steps)));
    return left.length === 0 ? [] : [{ ...entry, fieldsV1: fieldsV1(left) }];
  });
}

/** An update, of which the server only sees the outcome: what differs belongs to the writer now. */
export function updated(before: KubeObject | undefined, after: KubeObject, writer: Writer): KubeObject {
  const entries = entriesOf(after);
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
  const rest = takenFrom(entries, writer, new Set([...changed, ...gone].map(id)));
  return withEntries(after, setOf(rest, after, writer, [...kept.values()]));
}

/** A server-side apply: what the manager applied before and applies no more goes, unless somebody else owns it too. */
export function applied(live: KubeObject, body: KubeObject, writer: Writer, force: boolean): KubeObject {
  const entries = entriesOf(live);
  const wanted = pathsOf(body, writer.subresource);
  const wantedIds = new Set(wanted.map(id));
  const differing = wanted.filter((steps) => !isDeepStrictEqual(valueOf(live, steps), valueOf(body, steps)));
  const others = entries.filter((entry) => !isOf(entry, writer));
  const ownedByOthers = new Set(others.flatMap((entry) => pathsIn(entry.fieldsV1)).map(id));
  const conflicts = differing.filter((steps) => ownedByOthers.has(id(steps)));
  if (conflicts.length > 0 && !force) throw new FieldConflict(conflicts.map(id).join(', '));
  const result = merged(live, { ...body, metadata: { ...body.metadata, name: live.metadata.name } }) as KubeObject;
  const before = entries.filter((entry) => isOf(entry, writer)).flatMap((entry) => pathsIn(entry.fieldsV1));
  const copy = wireCopy(result);
  const dropped = before.filter((steps) => !wantedIds.has(id(steps)) && !ownedByOthers.has(id(steps)));
  // Items go only with their last owner.
  for (const steps of dropped) removeAt(copy, steps);
  const rest = takenFrom(entries, writer, new Set(differing.map(id)));
  return withEntries(copy, setOf(rest, live, writer, wanted));
}
