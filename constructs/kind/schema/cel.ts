import type { z } from 'zod';

/**
 * A validation rule in CEL that the API server evaluates.
 * Source: KEP-2876, `x-kubernetes-validations`.
 */
export interface CelRule {
  /**
   * The expression. `self` is the value that the rule is on, `oldSelf` the value before (transition rules).
   */
  readonly rule: string;
  /** What the user reads when the rule is false. */
  readonly message: string;
  /** An expression that yields the message; the server prefers it over `message`. */
  readonly messageExpression?: string;
  /** Which field the error names, for example `.spec.version`. */
  readonly fieldPath?: string;
  /** @default 'FieldValueInvalid' */
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  /** Also evaluate a transition rule on creation, with `oldSelf` optional. @default false */
  readonly optionalOldSelf?: boolean;
}

/** A CEL rule with the message that a violation shows. */
export function cel(rule: string, message: string, options: Omit<CelRule, 'rule' | 'message'> = {}): CelRule {
  return Object.freeze({ rule, message, ...options });
}

/** The keyword of CEL rules in a CRD's schema. Source: KEP-2876. */
const VALIDATIONS = 'x-kubernetes-validations';

/**
 * Adds a CEL rule to a field. Rules accumulate: those already on the schema, or on what it wraps (`optional`,
 * `default`, `nullable`), come first.
 *
 * The API server evaluates the rule on every write; with `check` zod rejects the same values at synth, with
 * the same message and, if the rule has a `fieldPath`, on the same field. As on the server, an absent or null
 * value is not checked.
 *
 * @param check whether a value satisfies the rule; transition rules (`oldSelf`) have none. Any other rule on
 * a whole spec needs one if the spec is to be optional: without it the CRD requires the spec, since an empty
 * one may break the rule
 */
export function withRule<S extends z.ZodType>(schema: S, rule: CelRule, check?: (value: z.output<S>) => boolean): S {
  const checked = check === undefined ? schema : addRefinement(schema, rule, check);
  return withMeta(checked, { [VALIDATIONS]: [...celRulesOf(schema), rule] });
}

/**
 * A field that cannot be changed once it is set.
 *
 * Caveat: the server compares only when the field is set both before and after; an optional field can still
 * be added or removed. Make it required, or put a rule on its parent: `has(self.x) == has(oldSelf.x)`.
 */
export function immutable<S extends z.ZodType>(schema: S, message = 'cannot be changed once it is set'): S {
  return withRule(schema, cel('self == oldSelf', message));
}

/** Adds metadata that becomes part of the CRD's schema. */
export function withMeta<S extends z.ZodType>(schema: S, meta: Readonly<Record<string, unknown>>): S {
  return schema.meta({ ...meta });
}

/**
 * Refinements that the server enforces too, each with its CEL rule, or undefined if a keyword enforces it.
 */
const serverEnforcedChecks = new WeakMap<object, CelRule | undefined>();

/** Whether the API server enforces a refinement too. */
export function isServerEnforced(check: object): boolean {
  return serverEnforcedChecks.has(check);
}

/** Adds a refinement that the server enforces too, by a rule or keyword that the caller adds. */
export function serverEnforcedRefinement<S extends z.ZodType>(
  schema: S,
  check: (value: z.output<S>) => boolean,
  { rule, ...params }: { readonly message: string; readonly path?: string[]; readonly rule?: CelRule },
): S {
  // A rule may rely on the rest of the schema: the server evaluates none on a value that does not fit it.
  const when = ({ issues }: z.core.ParsePayload): boolean => issues.length === 0;
  const refinedSchema = schema.refine<(value: z.output<S>) => boolean>(check, { ...params, when });
  const added = refinedSchema.def.checks?.at(-1);
  if (added !== undefined) serverEnforcedChecks.set(added, rule);
  return refinedSchema;
}

function addRefinement<S extends z.ZodType>(schema: S, rule: CelRule, check: (value: z.output<S>) => boolean): S {
  const path = rule.fieldPath?.split('.').filter((part) => part !== '');
  return serverEnforcedRefinement(schema, (value) => value === undefined || value === null || check(value), {
    message: rule.message,
    rule,
    ...(path === undefined ? {} : { path }),
  });
}

/** The rules on a schema itself, or else on what it wraps. */
function celRulesOf(schema: z.ZodType): readonly CelRule[] {
  const own = schema.meta()?.[VALIDATIONS];
  if (Array.isArray(own)) return own as readonly CelRule[];
  const { innerType } = schema.def as { innerType?: z.ZodType };
  return innerType === undefined ? [] : celRulesOf(innerType);
}

/**
 * The rules on a schema itself that only the server can evaluate, since they have no check in TypeScript.
 * Transition rules, which do not apply to a new object, are not among them.
 */
export function serverOnlyRules(schema: z.ZodType): readonly CelRule[] {
  const repeated = new Set(checksOf(schema).map((check) => serverEnforcedChecks.get(check)));
  return celRulesOf(schema).filter((rule) => !repeated.has(rule) && !isTransitionRule(rule));
}

function isTransitionRule({ rule, optionalOldSelf }: CelRule): boolean {
  return optionalOldSelf !== true && /\boldSelf\b/.test(stripStringLiterals(rule));
}

/** The refinements of a schema, those of what it wraps included. */
function checksOf(schema: z.ZodType): readonly object[] {
  const { checks = [], innerType } = schema.def as { checks?: readonly object[]; innerType?: z.ZodType };
  return innerType === undefined ? checks : [...checks, ...checksOf(innerType)];
}

/** The parts of `self` that a CEL rule reads. */
export interface RuleReferences {
  /** The rule uses `self` or `oldSelf` as a whole, for example `self == oldSelf`. */
  readonly whole: boolean;
  /**
   * Every name in the rule; a field that is not among them is not read, unless its parent is read as a whole.
   */
  readonly names: ReadonlySet<string>;
  /** The names that are used as a whole somewhere, for example `a` in `self.a == oldSelf.a`. */
  readonly wholeNames: ReadonlySet<string>;
  /** Some variable of a macro, such as `x` in `self.all(x, x != y)`, is used as a whole. */
  readonly wholeItems: boolean;
}

const MACROS =
  /[.](?:all|exists|exists_one|map|filter|existsOne|transformList|transformMap|transformMapEntry)\(\s*([A-Za-z_]\w*)\s*,\s*(?:([A-Za-z_]\w*)\s*,)?/g;

/**
 * What a rule reads, judged from its text alone; it errs on the side of too much.
 *
 * Assumptions: a field is read by its name (a typed object has no other access), and `has(...)` of a plain
 * path reads nothing.
 */
export function ruleReferences(rule: string): RuleReferences {
  const text = stripStringLiterals(rule).replaceAll(/\bhas\([^()]*\)/g, 'true');
  const variables = new Set([...text.matchAll(MACROS)].flatMap(([, first, second]) => [first, second]));
  const body = text.replaceAll(MACROS, (macro) => macro.replaceAll(/[A-Za-z_]\w*\s*,/g, ''));
  const names = new Set<string>();
  const wholeNames = new Set<string>();
  for (const match of body.matchAll(/([A-Za-z_]\w*)\s*([.[(]?)/g)) {
    const name = unescapeCelName(match[1] ?? '');
    names.add(name);
    if (match[2] === '') wholeNames.add(name);
  }
  const whole = wholeNames.has('self') || wholeNames.has('oldSelf');
  return {
    whole,
    names,
    wholeNames,
    wholeItems: [...variables].some((name) => name !== undefined && wholeNames.has(name)),
  };
}

/** A rule with its string literals emptied: words in them name no field. */
export function stripStringLiterals(rule: string): string {
  return rule.replaceAll(/'(\\.|[^'\\])*'|"(\\.|[^"\\])*"/g, "''");
}

/**
 * The name of a field in the schema, from its escaped form in CEL. Source: KEP-2876, "Field path escaping".
 */
export function unescapeCelName(name: string): string {
  return name
    .replaceAll('__dot__', '.')
    .replaceAll('__dash__', '-')
    .replaceAll('__slash__', '/')
    .replaceAll('__underscores__', '__')
    .replace(/^__(.+)__$/, '$1');
}
