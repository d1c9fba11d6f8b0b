import type { z } from 'zod';
import { cel } from './cel';
import type { CelRule } from './cel';

/** The keyword under which CEL rules stand in a CRD's schema. Source: KEP-2876. */
export const VALIDATIONS = 'x-kubernetes-validations';

/**
 * Adds a CEL rule to a field. Rules accumulate: those already on the schema, or on what it wraps (`optional`, `default`,
 * `nullable`), stay in front.
 *
 * The API server evaluates the rule on every write; with `check` zod refuses the same values at synth, with the same message and,
 * if the rule has a `fieldPath`, on the same field. As on the server, an absent or null value is not checked.
 *
 * @param check whether a value keeps the rule; transition rules (`oldSelf`) have none
 */
export function withRule<S extends z.ZodType>(schema: S, rule: CelRule, check?: (value: z.output<S>) => boolean): S {
  const checked = check === undefined ? schema : refined(schema, rule, check);
  return withMeta(checked, { [VALIDATIONS]: [...rulesOf(schema), rule] });
}

/**
 * A field that cannot be changed once it is set.
 *
 * Caveat: the server compares only when the field stands both before and after; an optional field can still be added or removed.
 * Make it required, or put a rule on its parent: `has(self.x) == has(oldSelf.x)`.
 */
export function immutable<S extends z.ZodType>(schema: S, message = 'cannot be changed once it is set'): S {
  return withRule(schema, cel('self == oldSelf', message));
}

/** Adds metadata that lands in the CRD's schema, besides what the schema carries already. */
export function withMeta<S extends z.ZodType>(schema: S, meta: Readonly<Record<string, unknown>>): S {
  return schema.meta({ ...meta });
}

/** Refinements that a keyword or a rule of the schema repeats for the server. */
const mirrored = new WeakSet();

/** Whether the API server enforces a refinement too. */
export function isMirrored(check: object): boolean {
  return mirrored.has(check);
}

/** A refinement that the server enforces by other means, which the caller sees to. */
export function mirroredRefinement<S extends z.ZodType>(
  schema: S,
  check: (value: z.output<S>) => boolean,
  params: { readonly message: string; readonly path?: string[] },
): S {
  // A rule may rely on what the schema demands, and the server evaluates none where that is not met.
  const when = ({ issues }: z.core.ParsePayload): boolean => issues.length === 0;
  const refinedSchema = schema.refine<(value: z.output<S>) => boolean>(check, { ...params, when });
  const added = refinedSchema.def.checks?.at(-1);
  if (added !== undefined) mirrored.add(added);
  return refinedSchema;
}

function refined<S extends z.ZodType>(schema: S, rule: CelRule, check: (value: z.output<S>) => boolean): S {
  const path = rule.fieldPath?.split('.').filter((part) => part !== '');
  return mirroredRefinement(schema, (value) => value === undefined || value === null || check(value), {
    message: rule.message,
    ...(path === undefined ? {} : { path }),
  });
}

/** The rules that a schema carries, on itself or on what it wraps. */
function rulesOf(schema: z.ZodType): readonly CelRule[] {
  const own = schema.meta()?.[VALIDATIONS];
  if (Array.isArray(own)) return own as readonly CelRule[];
  const { innerType } = schema.def as { innerType?: z.ZodType };
  return innerType === undefined ? [] : rulesOf(innerType);
}
