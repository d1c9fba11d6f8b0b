import type { z } from 'zod';
import { PREFIX } from '../kube/envelope';
import { ConversionError, type Problem } from '../kube/errors';
import { isObject, type KubeObject, type ObjectMeta } from '../kube/kube-object';
import type { AnyKind } from './kind';
import { describeObject, specProblems } from './validate';
import type { KindVersion } from './versions';

/** Where an object keeps, by `apiVersion`, the specs that the version it is written in cannot hold. */
export const CONVERSION_ANNOTATION = `${PREFIX}conversion-data`;

/** One version of a kind; `other` is absent for the current one. */
interface View {
  readonly apiVersion: string;
  readonly spec: z.ZodType;
  readonly other?: KindVersion;
}

type Kept = Readonly<Record<string, unknown>>;

/** A spec with what is kept aside of it. */
interface State {
  readonly spec: unknown;
  readonly kept: Kept;
}

/**
 * Converts an object to another version of its kind, as a conversion webhook does.
 *
 * Guarantees: pure; an object of the desired version is returned as it is. Only `apiVersion`, `spec` and one annotation change; the
 * status, and the rest of the metadata, stay. Nothing is lost: an object that is converted to any version and back has the spec that it had,
 * with defaults applied, whatever `toCurrent` and `fromCurrent` leave out; a field that is changed in between changes, and the others are
 * restored from the annotation {@link CONVERSION_ANNOTATION}, which is only there while it is needed.
 *
 * Caveats: a list is one value, so a change of one item in one version drops what only the other version can hold of the rest.
 *
 * Source: the API's contract of `ConversionReview` (`apiextensions.k8s.io/v1`).
 *
 * @throws ConversionError when a version is not the kind's, the spec does not fit the schema of its version, or what it becomes
 * does not fit the current version's
 */
export function convertObject(kind: AnyKind, object: KubeObject, desiredApiVersion: string): KubeObject {
  const refuse = (path: string, message: string): never => {
    throw new ConversionError(describeObject(object), desiredApiVersion, [{ path, message }]);
  };
  if (object.kind !== kind.kind) refuse('kind', `it is a ${object.kind}; a ${kind.kind} is expected`);
  const known = viewsOf(kind);
  const find = (apiVersion: string): View =>
    known.find((view) => view.apiVersion === apiVersion) ??
    refuse('apiVersion', `${kind.kind} has no ${apiVersion}; it has ${known.map((v) => v.apiVersion).join(', ')}`);
  const [from, to] = [find(object.apiVersion), find(desiredApiVersion)];
  if (from === to) return object;

  const steps = from.other !== undefined && to.other !== undefined ? [from, currentOf(kind), to] : [from, to];
  let state: State = { spec: object.spec ?? {}, kept: keptOf(object.metadata) };
  for (const [i, next] of steps.slice(1).entries()) {
    state = new Step(object, steps[i] as View, next).convert(state);
  }
  const hasSpec = object.spec !== undefined || !sameJson(state.spec, {});
  const { apiVersion } = to;
  const metadata = withKept(object.metadata, state.kept);
  return { ...object, apiVersion, metadata, ...(hasSpec ? { spec: state.spec } : {}) };
}

function currentOf(kind: AnyKind): View {
  return { apiVersion: kind.apiVersion, spec: kind.spec as z.ZodType };
}

function viewsOf(kind: AnyKind): readonly View[] {
  const others = (kind.versions as readonly KindVersion[]).map((other): View => ({
    apiVersion: other.apiVersion,
    spec: other.spec,
    other,
  }));
  return [currentOf(kind), ...others];
}

/** A conversion between the current version and another one. */
class Step {
  constructor(
    private readonly object: KubeObject,
    private readonly from: View,
    private readonly to: View,
  ) {}

  convert({ spec, kept }: State): State {
    const others = without(kept, [this.from.apiVersion, this.to.apiVersion]);
    const aside = Object.hasOwn(kept, this.to.apiVersion)
      ? this.to.spec.safeParse(kept[this.to.apiVersion])
      : undefined;
    const restorable = aside?.success === true ? { spec: aside.data } : undefined;
    const source = this.from.spec.safeParse(spec);
    if (!source.success) {
      // The other version may admit what this one does not. Untouched, it goes back as it came.
      if (restorable !== undefined && sameJson(spec, this.run(this.to, this.from, restorable.spec))) {
        return { spec: restorable.spec, kept: others };
      }
      throw this.error(specProblems(source.error, spec));
    }
    const result = this.choose(source.data, restorable);
    const isComplete = this.fits(result) && sameJson(this.run(this.to, this.from, result), source.data);
    return { spec: result, kept: isComplete ? others : { ...others, [this.from.apiVersion]: source.data } };
  }

  /**
   * The spec in the new version: what was kept aside with the changes since, if it fits the schema and does not bend what is
   * written now; else just what is written now.
   */
  private choose(source: unknown, restorable: { readonly spec: unknown } | undefined): unknown {
    const plain = this.run(this.from, this.to, source);
    if (restorable !== undefined) {
      const base = this.run(this.from, this.to, this.run(this.to, this.from, restorable.spec));
      const merged = this.to.spec.safeParse(mergeKept(restorable.spec, base, plain));
      if (merged.success && this.readsBack(source, plain, merged.data)) return merged.data;
    }
    if (this.to.other !== undefined || this.fits(plain)) return plain;
    const parsed = this.to.spec.safeParse(plain);
    throw this.error(parsed.success ? [] : specProblems(parsed.error, plain));
  }

  /** Whether `source`, kept aside, comes back from `merged`, and `merged` from that. Of `plain` both are always true. */
  private readsBack(source: unknown, plain: unknown, merged: unknown): boolean {
    const back = (spec: unknown): unknown => this.run(this.to, this.from, spec);
    const again = this.run(this.from, this.to, back(merged));
    return (
      sameJson(mergeKept(source, back(plain), back(merged)), source) &&
      sameJson(mergeKept(merged, again, plain), merged)
    );
  }

  private fits(spec: unknown): boolean {
    return this.to.spec.safeParse(spec).success;
  }

  /** Calls the kind's own function. Defaults are applied where the result fits its schema. */
  private run(from: View, to: View, spec: unknown): unknown {
    const result = withoutUndefined(this.call(from, to, spec));
    const parsed = to.spec.safeParse(result);
    return parsed.success ? parsed.data : result;
  }

  private call(from: View, to: View, spec: unknown): unknown {
    const typed = spec as Record<string, unknown>;
    const name = from.other === undefined ? 'fromCurrent' : 'toCurrent';
    const other = from.other ?? to.other;
    try {
      return other?.[name](typed);
    } catch (error) {
      const message = `${name} of ${String(other?.version)} threw ${error instanceof Error ? error.message : String(error)}`;
      throw this.error([{ path: 'spec', message }], error);
    }
  }

  private error(problems: readonly Problem[], cause?: unknown): ConversionError {
    return new ConversionError(describeObject(this.object), this.to.apiVersion, problems, { cause });
  }
}

/** What the annotation holds; nothing when somebody has broken it. */
function keptOf({ annotations }: ObjectMeta): Kept {
  const text = annotations?.[CONVERSION_ANNOTATION];
  if (text === undefined) return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Kept) : {};
  } catch {
    return {};
  }
}

function withKept(metadata: ObjectMeta, kept: Kept): ObjectMeta {
  const { annotations, ...rest } = metadata;
  const others = without(annotations ?? {}, [CONVERSION_ANNOTATION]);
  const isEmpty = Object.keys(kept).length === 0;
  const now = isEmpty ? others : { ...others, [CONVERSION_ANNOTATION]: JSON.stringify(kept) };
  return { ...rest, ...(Object.keys(now).length === 0 ? {} : { annotations: now }) };
}

function without<T>(record: Readonly<Record<string, T>>, keys: readonly string[]): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)));
}

/**
 * What somebody changed, put on what was kept: where `now` is as `base`, `kept` stands; elsewhere `now` does. Objects are merged field
 * by field, lists as a whole.
 */
export function mergeKept(kept: unknown, base: unknown, now: unknown): unknown {
  if (sameJson(base, now)) return kept;
  if (!isObject(kept) || !isObject(base) || !isObject(now)) return now;
  const keys = new Set([...Object.keys(now), ...Object.keys(kept)]);
  const merged = [...keys].map((key) => [key, mergeKept(own(kept, key), own(base, key), own(now, key))] as const);
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
}

/** Whether two values are the same JSON, whatever the order of their keys; an undefined field counts as an absent one. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => sameJson(item, (b as unknown[])[i]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => sameJson(own(a, key), own(b, key)));
}

/** A value without the fields that are undefined, as JSON would carry it. */
function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined);
  if (!isObject(value)) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(fields.map(([key, field]) => [key, withoutUndefined(field)]));
}

function own(object: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
