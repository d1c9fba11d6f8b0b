import type { z } from 'zod';
import { cel } from './cel';
import type { CelRule } from './cel';
import { withoutTexts } from './structural-schema-cel-references';

/** The keyword under which CEL rules stand in a CRD's schema. Source: KEP-2876. */
export const VALIDATIONS = 'x-kubernetes-validations';

/**
 * Adds a CEL rule to a field. Rules accumulate: those already on the schema, or on what it wraps (`optional`, `default`,
 * `nullable`), stay in front.
 *
 * The API server evaluates the rule on every write; with `check` zod refuses the same values at synth, with the same message and,
 * if the rule has a `fieldPath`, on the same field. As on the server, an absent or null value is not checked.
 *
 * @param check whether a value keeps the rule; transition rules (`oldSelf`) have none. Of a rule on a whole spec that has none, nobody knows
 * whether an empty spec keeps it, so the CRD requires the spec
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

/** Refinements that a keyword or a rule of the schema repeats for the server; that rule, or undefined for a keyword. */
const mirrored = new WeakMap<object, CelRule | undefined>();

/** Whether the API server enforces a refinement too. */
export function isMirrored(check: object): boolean {
  return mirrored.has(check);
}

/** A refinement that the server enforces by other means, which the caller sees to. */
export function mirroredRefinement<S extends z.ZodType>(
  schema: S,
  check: (value: z.output<S>) => boolean,
  { rule, ...params }: { readonly message: string; readonly path?: string[]; readonly rule?: CelRule },
): S {
  // A rule may rely on what the schema demands, and the server evaluates none where that is not met.
  const when = ({ issues }: z.core.ParsePayload): boolean => issues.length === 0;
  const refinedSchema = schema.refine<(value: z.output<S>) => boolean>(check, { ...params, when });
  const added = refinedSchema.def.checks?.at(-1);
  if (added !== undefined) mirrored.set(added, rule);
  return refinedSchema;
}

function refined<S extends z.ZodType>(schema: S, rule: CelRule, check: (value: z.output<S>) => boolean): S {
  const path = rule.fieldPath?.split('.').filter((part) => part !== '');
  return mirroredRefinement(schema, (value) => value === undefined || value === null || check(value), {
    message: rule.message,
    rule,
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

/**
 * The rules on a schema itself that only the server can evaluate: no check repeats them in TypeScript. Transition rules, which say nothing of
 * a new object, are not among them.
 */
export function rulesWithoutCheck(schema: z.ZodType): readonly CelRule[] {
  const repeated = new Set(checksOf(schema).map((check) => mirrored.get(check)));
  return rulesOf(schema).filter((rule) => !repeated.has(rule) && !isTransition(rule));
}

function isTransition({ rule, optionalOldSelf }: CelRule): boolean {
  return optionalOldSelf !== true && /\boldSelf\b/.test(withoutTexts(rule));
}

/** The refinements of a schema, those of what it wraps included. */
function checksOf(schema: z.ZodType): readonly object[] {
  const { checks = [], innerType } = schema.def as { checks?: readonly object[]; innerType?: z.ZodType };
  return innerType === undefined ? checks : [...checks, ...checksOf(innerType)];
}
