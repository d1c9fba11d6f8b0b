import type { z } from 'zod';
import type { CelRule } from './schema/cel';
import type { Problem } from '../kube/errors';
import { schemaPathProblems, type PrinterColumn, type ScaleSubresource } from './columns-and-scale';
import { toStructuralSchema, type StructuralSchema } from './schema/structural-schema';

/**
 * A version of a kind besides its own: older ones that clients still use, or a newer one that is not stored yet. Status is the same
 * in all versions.
 *
 * `S` is the current spec, `O` this version's.
 */
export interface OtherVersion<S extends z.ZodObject, O extends z.ZodObject = z.ZodObject> {
  /** For example `v1alpha1`. */
  readonly version: string;
  readonly spec: O;
  /** The description that `kubectl explain` shows for this version. @default the kind's */
  readonly description?: string;
  /** False once clients may no longer use it, while objects may still be stored in it. @default true */
  readonly served?: boolean;
  /** Responses to requests for this version carry a warning. @default false */
  readonly deprecated?: boolean;
  /** The warning's text. @default the server's own, which names the version */
  readonly deprecationWarning?: string;
  /** @default Ready and Age */
  readonly columns?: readonly PrinterColumn[];
  /** @default none: the current version's paths may not exist here */
  readonly scale?: ScaleSubresource;
  /** Rules on the whole object; rules on one field belong to that field's schema. @default none */
  readonly rules?: readonly CelRule[];
  /**
   * Converts a spec of this version to the current one. Pure and total: it converts every spec that fits the
   * schema. Where something required is missing, it is called with several values in its place.
   */
  toCurrent(spec: z.output<O>): z.input<S>;
  /**
   * The reverse. It may leave out what this version cannot express: the conversion preserves it in an
   * annotation.
   */
  fromCurrent(spec: z.output<S>): z.input<O>;
}

/** Versions with specs of their own; TypeScript infers `V` from them. */
export type OtherVersions<S extends z.ZodObject, V extends readonly z.ZodObject[]> = {
  readonly [I in keyof V]: OtherVersion<S, V[I]>;
};

/** A version of a defined kind, with its defaults applied. */
export interface KindVersion<S extends z.ZodObject = z.ZodObject> extends OtherVersion<S> {
  readonly served: boolean;
  readonly deprecated: boolean;
  readonly columns: readonly PrinterColumn[];
  readonly rules: readonly CelRule[];
  /** `<group>/<version>`. */
  readonly apiVersion: string;
  /** The schema of `spec` in the CRD. */
  readonly schema: StructuralSchema;
}

/** How versions of a Kubernetes API are named. */
export const VERSION_PATTERN = /^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$/;

interface Definition<S extends z.ZodObject> {
  readonly group: string;
  readonly version: string;
  readonly versions?: readonly OtherVersion<S>[];
}

/** The other versions of a definition, frozen; what is wrong with them is added to `problems`. */
export function defineOtherVersions<S extends z.ZodObject>(
  definition: Definition<S>,
  status: StructuralSchema,
  problems: Problem[],
): readonly KindVersion<S>[] {
  const versions = definition.versions ?? [];
  problems.push(...versionNameProblems(definition.version, versions));
  return Object.freeze(
    versions.map((version, i) => {
      const found: Problem[] = deprecationProblems(version);
      const schema = toStructuralSchema(version.spec, 'spec', found);
      found.push(...schemaPathProblems(version, schema, status));
      problems.push(...found.map(({ path, message }) => ({ path: `versions[${String(i)}].${path}`, message })));
      return Object.freeze({
        ...version,
        served: version.served ?? true,
        deprecated: version.deprecated ?? false,
        columns: Object.freeze([...(version.columns ?? [])]),
        rules: Object.freeze([...(version.rules ?? [])]),
        apiVersion: `${definition.group}/${version.version}`,
        schema,
      });
    }),
  );
}

function versionNameProblems(own: string, versions: readonly { readonly version: string }[]): Problem[] {
  const problems: Problem[] = [];
  const names = versions.map(({ version }) => version);
  names.forEach((name, i) => {
    const path = `versions[${String(i)}].version`;
    if (!VERSION_PATTERN.test(name))
      problems.push({ path, message: `"${name}" must look like v1, v1beta1 or v2alpha3` });
    if (name === own) problems.push({ path, message: `"${name}" is the kind's own version; list the others only` });
    else if (names.indexOf(name) < i) problems.push({ path, message: `"${name}" stands twice` });
  });
  if (problems.length > 0) return problems;
  const sorted = [...names].sort(compareVersionPriority);
  if (sorted.some((name, i) => name !== names[i])) {
    problems.push({ path: 'versions', message: `must stand in the server's order of priority: ${sorted.join(', ')}` });
  }
  return problems;
}

/**
 * The order in which the server offers versions: stable before beta before alpha, higher numbers first.
 * Source: "Version priority" of the documentation of CRD versions.
 */
function compareVersionPriority(a: string, b: string): number {
  const [x, y] = [parseVersionPriority(a), parseVersionPriority(b)];
  return y.stage - x.stage || y.major - x.major || y.minor - x.minor;
}

function parseVersionPriority(version: string): {
  readonly stage: number;
  readonly major: number;
  readonly minor: number;
} {
  const [, major = '0', stage, minor = '0'] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? [];
  return { stage: stage === undefined ? 2 : stage === 'beta' ? 1 : 0, major: Number(major), minor: Number(minor) };
}

interface Deprecation {
  readonly deprecated?: boolean;
  readonly deprecationWarning?: string;
}

/** The server rejects longer warnings. Source: the validation of `apiextensions.k8s.io/v1`. */
const MAX_WARNING_BYTES = 256;

function deprecationProblems({ deprecated, deprecationWarning }: Deprecation): Problem[] {
  if (deprecationWarning === undefined) return [];
  const path = 'deprecationWarning';
  if (deprecated !== true) return [{ path, message: 'the version is not deprecated; set deprecated: true' }];
  const bytes = new TextEncoder().encode(deprecationWarning).length;
  const isPrintable = !/[\p{Cc}\p{Cs}]/u.test(deprecationWarning);
  if (bytes > 0 && bytes <= MAX_WARNING_BYTES && isPrintable) return [];
  return [{ path, message: `must be one line of 1 to ${String(MAX_WARNING_BYTES)} bytes` }];
}
