import type { z } from 'zod';
import { ANNOTATION_PREFIX } from '../kube/envelope';
import { ConversionError, type Problem } from '../kube/errors';
import { describeThrown } from '../kube/function-error';
import { isObject, type KubeObject, type ObjectMeta } from '../kube/kube-object';
import type { AnyKind } from './kind';
import { completedSpecs, applyDefaults } from './incomplete-spec';
import type { StructuralSchema } from './schema/structural-schema';
import { describeObject, isIncomplete, problemsFromZodError } from './validate';
import type { KindVersion } from './versions';

/**
 * The annotation with the specs, by `apiVersion`, that the object's current version cannot express in full.
 */
export const CONVERSION_ANNOTATION = `${ANNOTATION_PREFIX}conversion-data`;

/** Options of {@link convertObject}. */
export interface ConvertOptions {
  /**
   * Convert a spec too that lacks something required, but has no other fault: what depends on the missing value is missing as well. The
   * API server asks for that when a field manager applies an object in another version than before, or lets go of a required
   * field; it validates what comes of it. Source: `prune` of sigs.k8s.io/structured-merge-diff.
   * @default false: it is refused
   */
  readonly incomplete?: boolean;
}

/**
 * Converts an object to another version of its kind, as a conversion webhook does.
 *
 * Guarantees: pure; an object of the desired version is returned as it is. Only `apiVersion`, `spec` and one
 * annotation change; the status and the rest of the metadata do not. Nothing is lost: an object that is
 * converted to any version and back has its old spec, with defaults applied, whatever `toCurrent` and
 * `fromCurrent` leave out. A field that is changed in between keeps its change; the others are restored from
 * the annotation {@link CONVERSION_ANNOTATION}, which exists only while it is needed.
 *
 * Caveats: a list is one value, so changing one item in one version drops what only the other version can
 * express of the rest.
 *
 * Source: the API's contract of `ConversionReview` (`apiextensions.k8s.io/v1`).
 *
 * @throws ConversionError when a version is not the kind's, the spec does not fit the schema of its version,
 * or the result does not fit the current version's
 */
export function convertObject(
  kind: AnyKind,
  object: KubeObject,
  desiredApiVersion: string,
  options: ConvertOptions = {},
): KubeObject {
  const refuse = (path: string, message: string): never => {
    throw new ConversionError(describeObject(object), desiredApiVersion, [{ path, message }]);
  };
  if (object.kind !== kind.kind) refuse('kind', `it is a ${object.kind}; a ${kind.kind} is expected`);
  const known = schemaVersions(kind);
  const find = (apiVersion: string): SchemaVersion =>
    known.find((view) => view.apiVersion === apiVersion) ??
    refuse('apiVersion', `${kind.kind} has no ${apiVersion}; it has ${known.map((v) => v.apiVersion).join(', ')}`);
  const [from, to] = [find(object.apiVersion), find(desiredApiVersion)];
  if (from === to) return object;

  const steps = from.other !== undefined && to.other !== undefined ? [from, hubVersion(kind), to] : [from, to];
  let state: ConversionState = { spec: object.spec ?? {}, kept: readPreserved(object.metadata) };
  for (const [i, next] of steps.slice(1).entries()) {
    state = new ConversionStep(object, steps[i] as SchemaVersion, next, options).convert(state);
  }
  const hasSpec = object.spec !== undefined || !jsonEquals(state.spec, {});
  const { apiVersion } = to;
  const metadata = writePreserved(object.metadata, state.kept);
  return { ...object, apiVersion, metadata, ...(hasSpec ? { spec: state.spec } : {}) };
}

/** One version of a kind; `other` is absent for the current one. */
interface SchemaVersion {
  readonly apiVersion: string;
  readonly spec: z.ZodType;
  readonly schema: StructuralSchema;
  readonly other?: KindVersion;
}

function schemaVersions(kind: AnyKind): readonly SchemaVersion[] {
  const others = (kind.versions as readonly KindVersion[]).map((other): SchemaVersion => ({
    apiVersion: other.apiVersion,
    spec: other.spec,
    schema: other.schema,
    other,
  }));
  return [hubVersion(kind), ...others];
}

function hubVersion(kind: AnyKind): SchemaVersion {
  return { apiVersion: kind.apiVersion, spec: kind.spec as z.ZodType, schema: kind.schema.spec };
}

type PreservedSpecs = Readonly<Record<string, unknown>>;

/** A spec, and the specs that are preserved in the annotation. */
interface ConversionState {
  readonly spec: unknown;
  readonly kept: PreservedSpecs;
}

/** How many of the values that stand for something missing a converter must take. */
const MIN_RESULTS = 3;

/** A spec that may be incomplete, and the one of the other version that is preserved, which may be incomplete too. */
interface IncompleteSource {
  readonly source: z.ZodSafeParseResult<unknown>;
  readonly spec: unknown;
  /** Undefined: nothing is preserved that can be used. */
  readonly former: unknown;
}

/** A spec that may be incomplete, and whether converting it back yields the whole source. */
interface PartialSpec {
  readonly spec: unknown;
  readonly isCovered: boolean;
}

/** A conversion between the current version and another one. */
class ConversionStep {
  constructor(
    private readonly object: KubeObject,
    private readonly from: SchemaVersion,
    private readonly to: SchemaVersion,
    private readonly options: ConvertOptions,
  ) {}

  convert({ spec, kept }: ConversionState): ConversionState {
    const others = omitKeys(kept, [this.from.apiVersion, this.to.apiVersion]);
    const preserved = own(kept, this.to.apiVersion);
    const parsed = preserved === undefined ? undefined : this.to.spec.safeParse(preserved);
    const restorable = parsed?.success === true ? { spec: parsed.data } : undefined;
    const { incomplete = false } = this.options;
    // Whole, or incomplete where that may be.
    const former = restorable?.spec ?? (incomplete && isIncomplete(parsed, preserved) ? preserved : undefined);
    const source = this.from.spec.safeParse(spec);
    // The other version may accept what this one does not. An unchanged spec is converted back to what it was.
    const isUnchanged = !source.success && former !== undefined && jsonEquals(spec, this.reversed().tryConvert(former));
    if (isUnchanged) return { spec: former, kept: others };
    const isPartial = source.success ? former !== undefined && restorable === undefined : isIncomplete(source, spec);
    const partial = incomplete && isPartial ? this.convertIncomplete({ source, spec, former }) : undefined;
    if (partial !== undefined) {
      // Preserved where it is needed only: server-side apply keeps the annotation of the whole object, with all that is in it, if what is left of
      // the object has one too.
      return { spec: partial.spec, kept: partial.isCovered ? others : { ...others, [this.from.apiVersion]: spec } };
    }
    if (!source.success) throw this.toConversionError(problemsFromZodError(source.error, spec));
    const result = this.mergePreserved(source.data, restorable);
    const isComplete = this.isValid(result) && jsonEquals(this.convertSpec(this.to, this.from, result), source.data);
    return { spec: result, kept: isComplete ? others : { ...others, [this.from.apiVersion]: source.data } };
  }

  /**
   * The spec in the new version: the preserved spec with the changes since then, if that fits the schema and
   * does not alter the current spec; otherwise only the current spec, converted.
   */
  private mergePreserved(source: unknown, restorable: { readonly spec: unknown } | undefined): unknown {
    const plain = this.convertSpec(this.from, this.to, source);
    if (restorable !== undefined) {
      const base = this.convertSpec(this.from, this.to, this.convertSpec(this.to, this.from, restorable.spec));
      const merged = this.to.spec.safeParse(threeWayMerge(restorable.spec, base, plain));
      if (merged.success && this.roundTrips(source, plain, merged.data)) return merged.data;
    }
    if (this.to.other !== undefined || this.isValid(plain)) return plain;
    const parsed = this.to.spec.safeParse(plain);
    throw this.toConversionError(parsed.success ? [] : problemsFromZodError(parsed.error, plain));
  }

  /**
   * Whether `source` can be restored from `merged`, and `merged` from that. For `plain` both are always true.
   */
  private roundTrips(source: unknown, plain: unknown, merged: unknown): boolean {
    const back = (spec: unknown): unknown => this.convertSpec(this.to, this.from, spec);
    const again = this.convertSpec(this.from, this.to, back(merged));
    return (
      jsonEquals(threeWayMerge(source, back(plain), back(merged)), source) &&
      jsonEquals(threeWayMerge(merged, again, plain), merged)
    );
  }

  /**
   * Converts a spec that is incomplete, or that was in the other version.
   *
   * @returns undefined when the converter cannot do without what is missing, or a whole spec is converted like any other
   */
  private convertIncomplete({ source, spec, former }: IncompleteSource): PartialSpec | undefined {
    const given = source.success ? source.data : spec;
    const plain = this.tryConvert(given);
    if (plain === undefined) return undefined;
    const restored = former === undefined ? undefined : this.restoreIncomplete(given, plain, former);
    // What the converter makes of a whole spec is checked like that of any other.
    if (source.success && restored === undefined) return undefined;
    const result = restored ?? plain;
    const parsed = this.to.spec.safeParse(result);
    if (this.to.other === undefined && !parsed.success && !isIncomplete(parsed, result)) {
      throw this.toConversionError(problemsFromZodError(parsed.error, result));
    }
    return { spec: result, isCovered: this.reversed().yields(result, given) };
  }

  /**
   * The converted spec; of an incomplete one, the fields on which all completed variants agree.
   *
   * @returns undefined when the spec has another fault, or the converter takes too few of the variants
   */
  private tryConvert(spec: unknown): unknown {
    const whole = this.from.spec.safeParse(spec);
    if (whole.success) return this.convertSpec(this.from, this.to, whole.data);
    if (!isIncomplete(whole, spec)) return undefined;
    const results = completedSpecs(this.from.schema, spec).flatMap((complete) => {
      try {
        return [applyDefaults(this.to.schema, withoutUndefined(this.callConverter(this.from, this.to, complete)))];
      } catch (error) {
        if (error instanceof ConversionError) return [];
        throw error;
      }
    });
    return results.length < MIN_RESULTS ? undefined : results.reduce(commonPart);
  }

  /** The preserved spec with the changes since then; undefined if converting that back does not yield `source`. */
  private restoreIncomplete(source: unknown, plain: unknown, former: unknown): unknown {
    const before = this.reversed().tryConvert(former);
    const base = before === undefined ? undefined : this.tryConvert(before);
    if (base === undefined) return undefined;
    const merged = threeWayMerge(former, base, plain);
    return this.reversed().yields(merged, source) ? merged : undefined;
  }

  private reversed(): ConversionStep {
    return new ConversionStep(this.object, this.to, this.from, this.options);
  }

  /** Whether converting a spec yields all of `wanted`. */
  private yields(spec: unknown, wanted: unknown): boolean {
    return jsonEquals(commonPart(wanted, this.tryConvert(spec)), wanted);
  }

  private isValid(spec: unknown): boolean {
    return this.to.spec.safeParse(spec).success;
  }

  /** Calls the kind's own converter, and applies defaults if the result fits its schema. */
  private convertSpec(from: SchemaVersion, to: SchemaVersion, spec: unknown): unknown {
    const result = withoutUndefined(this.callConverter(from, to, spec));
    const parsed = to.spec.safeParse(result);
    return parsed.success ? parsed.data : result;
  }

  private callConverter(from: SchemaVersion, to: SchemaVersion, spec: unknown): unknown {
    const typed = spec as Record<string, unknown>;
    const name = from.other === undefined ? 'fromCurrent' : 'toCurrent';
    const other = from.other ?? to.other;
    try {
      return other?.[name](typed);
    } catch (error) {
      const message = `${name} of ${String(other?.version)} threw ${describeThrown(error)}`;
      throw this.toConversionError([{ path: 'spec', message }], error);
    }
  }

  private toConversionError(problems: readonly Problem[], cause?: unknown): ConversionError {
    return new ConversionError(describeObject(this.object), this.to.apiVersion, problems, { cause });
  }
}

/** The specs in the annotation; none if its value is not valid JSON. */
function readPreserved({ annotations }: ObjectMeta): PreservedSpecs {
  const text = annotations?.[CONVERSION_ANNOTATION];
  if (text === undefined) return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as PreservedSpecs) : {};
  } catch {
    return {};
  }
}

function writePreserved(metadata: ObjectMeta, kept: PreservedSpecs): ObjectMeta {
  const { annotations, ...rest } = metadata;
  const others = omitKeys(annotations ?? {}, [CONVERSION_ANNOTATION]);
  const isEmpty = Object.keys(kept).length === 0;
  const now = isEmpty ? others : { ...others, [CONVERSION_ANNOTATION]: JSON.stringify(kept) };
  return { ...rest, ...(Object.keys(now).length === 0 ? {} : { annotations: now }) };
}

function omitKeys<T>(record: Readonly<Record<string, T>>, keys: readonly string[]): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)));
}

/**
 * Applies the changes from `base` to `now` to `kept`: the result has `kept` where `now` equals `base`, and
 * `now` elsewhere. Objects are merged field by field, lists as a whole.
 *
 * @testonly
 */
export function threeWayMerge(kept: unknown, base: unknown, now: unknown): unknown {
  if (jsonEquals(base, now)) return kept;
  if (!isObject(kept) || !isObject(base) || !isObject(now)) return now;
  const keys = new Set([...Object.keys(now), ...Object.keys(kept)]);
  const merged = [...keys].map((key) => [key, threeWayMerge(own(kept, key), own(base, key), own(now, key))] as const);
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
}

/** What two values have in common. Objects are compared field by field, and lists of one length item by item. */
function commonPart(a: unknown, b: unknown): unknown {
  if (jsonEquals(a, b)) return a;
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length) {
    const items = a.map((item, i) => commonPart(item, (b as unknown[])[i]));
    return items.includes(undefined) ? undefined : items;
  }
  if (!isObject(a) || !isObject(b)) return undefined;
  const fields = Object.keys(a).map((key) => [key, commonPart(a[key], own(b, key))] as const);
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

/**
 * Whether two values are the same JSON, whatever the order of their keys; an undefined field counts as an absent one.
 *
 * @testonly
 */
export function jsonEquals(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => jsonEquals(item, (b as unknown[])[i]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => jsonEquals(own(a, key), own(b, key)));
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
