import type { z } from 'zod';
import type { Problem } from '../../kube/errors';
import { isServerEnforced } from './cel';

/**
 * Parts of a zod schema that Kubernetes cannot express and JSON Schema would hide, with the paths of the
 * fields.
 */
export function zodProblems(schema: z.ZodType, path: string): Problem[] {
  const context: Context = { problems: [], above: [], flags: noFlags };
  visitSchema(schema, path, context);
  return context.problems;
}

interface Context {
  readonly problems: Problem[];
  /** The schemas around this one, to find cycles. */
  readonly above: readonly z.ZodType[];
  readonly flags: Flags;
}

/** Properties of a schema from its own metadata or that of the wrappers around it. */
interface Flags {
  readonly preserves: boolean;
  readonly embeddedMetadata: boolean;
}

const noFlags: Flags = { preserves: false, embeddedMetadata: false };

/** The parts of zod's internal definitions that are read here. */
interface Definition {
  readonly type: string;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly catchall?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly keyType?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly values?: readonly unknown[];
  readonly defaultValue?: unknown;
  readonly coerce?: boolean;
  readonly checks?: readonly Check[];
}

interface Check {
  readonly _zod: { readonly def: { readonly check: string; readonly pattern?: RegExp; readonly format?: string } };
}

const PRESERVE_UNKNOWN_FIELDS = 'x-kubernetes-preserve-unknown-fields';

function visitSchema(schema: z.ZodType, path: string, context: Context): void {
  if (context.above.includes(schema)) {
    report(context, path, 'the schema contains itself, which is not structural; unfold it or use anyValue()');
    return;
  }
  const definition = schema.def as unknown as Definition;
  const meta = schema.meta() ?? {};
  const flags = { ...context.flags, preserves: context.flags.preserves || meta[PRESERVE_UNKNOWN_FIELDS] === true };
  if (definition.coerce === true) report(context, path, 'z.coerce accepts what the server refuses; use the plain type');
  visitChecks(definition, path, context);
  const below = { ...context, above: [...context.above, schema], flags };
  if (flags.preserves && (definition.type === 'unknown' || definition.type === 'any')) return;
  const visitor = visitors[definition.type];
  if (visitor === undefined)
    report(context, path, unsupportedTypes[definition.type] ?? `z.${definition.type} is not supported`);
  else visitor(definition, path, below);
}

function visitChecks(definition: Definition, path: string, context: Context): void {
  for (const check of definition.checks ?? []) {
    const { check: kind, pattern } = check._zod.def;
    if (kind === 'overwrite') {
      report(
        context,
        path,
        'it changes its value (trim, toLowerCase and the like); the server stores what the user wrote',
      );
    } else if (kind === 'custom' && !isServerEnforced(check)) {
      report(context, path, 'the server does not know this refinement; use withRule(schema, cel(...), check)');
    } else if (pattern !== undefined && /[imsuvy]/.test(pattern.flags)) {
      report(context, path, `the flags of ${String(pattern)} are lost in a CRD; write the pattern without them`);
    }
  }
}

type Visitor = (definition: Definition, path: string, context: Context) => void;

/** How to visit the types that can be expressed. */
const visitors: Readonly<Record<string, Visitor>> = {
  string: visitLeaf,
  template_literal: visitLeaf,
  number: visitLeaf,
  boolean: visitLeaf,
  enum: visitLeaf,
  literal: visitLiteral,
  object: visitObject,
  array: ({ element }, path, context) => {
    if (element !== undefined) visitSchema(element, `${path}[]`, { ...context, flags: noFlags });
  },
  record: visitRecord,
  union: ({ options = [] }, path, context) => {
    for (const option of options) visitSchema(option, path, { ...context, flags: noFlags });
  },
  optional: visitInner,
  nullable: visitInner,
  nonoptional: visitInner,
  readonly: visitInner,
  default: visitDefault,
  prefault: visitDefault,
};

/** Types of zod that a CRD cannot express, and what to write instead. */
const unsupportedTypes: Readonly<Record<string, string>> = {
  any: 'says nothing of its value, and the server would prune it; use anyValue() or preserveUnknownFields(z.object({...}))',
  unknown:
    'says nothing of its value, and the server would prune it; use anyValue() or preserveUnknownFields(z.object({...}))',
  bigint: 'a bigint is no JSON; use z.int()',
  catch: 'z.catch hides what the server would refuse; remove it',
  custom: 'z.custom is unknown to the server; use a schema of its own and withRule',
  date: 'a Date is no JSON; use z.iso.datetime()',
  file: 'a File is no JSON',
  function: 'a function is no JSON',
  intersection: 'an intersection is not structural; write one object with .extend()',
  lazy: 'a schema that may contain itself is not structural; unfold it or use anyValue()',
  map: 'a Map is no JSON; use mapOf()',
  nan: 'NaN is no JSON',
  never: 'z.never admits nothing; leave the field out',
  null: 'null alone is not structural; use .nullable() on the other type',
  pipe: 'a transformation would show the operator another value than the server stores; remove it',
  promise: 'a promise is no JSON',
  set: 'a Set is no JSON; use listSet()',
  success: 'z.success is no JSON',
  symbol: 'a symbol is no JSON',
  transform: 'a transformation would show the operator another value than the server stores; remove it',
  tuple: 'a tuple is not structural: all items of a list have one schema; use z.object or z.array',
  undefined: 'undefined is no JSON; use .optional()',
  void: 'undefined is no JSON; use .optional()',
};

function visitLeaf(): void {
  // Has no schemas below it.
}

function visitLiteral({ values = [] }: Definition, path: string, context: Context): void {
  const types = new Set(values.map((value) => (value === null ? 'null' : typeof value)));
  if (types.has('bigint') || types.has('undefined')) report(context, path, 'the literal is no JSON');
  else if (types.has('null')) report(context, path, 'null among the literals is not structural; use .nullable()');
  else if (types.size > 1) report(context, path, 'literals of several types are not structural; use one type');
}

function visitObject({ shape = {}, catchall }: Definition, path: string, context: Context): void {
  const { preserves, embeddedMetadata } = context.flags;
  const rest = (catchall?.def as Definition | undefined)?.type;
  if (rest === 'never') {
    report(
      context,
      path,
      'unknown fields cannot be forbidden: the server prunes them, and strict clients refuse them; use z.object',
    );
  } else if ((rest === 'unknown' || rest === 'any') && !preserves && !embeddedMetadata) {
    report(
      context,
      path,
      'zod would keep unknown fields and the server prunes them; use preserveUnknownFields(z.object({...}))',
    );
  } else if (rest !== undefined && rest !== 'unknown' && rest !== 'any') {
    report(
      context,
      path,
      'fields and additional fields cannot stand together; put the latter in a map of their own (mapOf)',
    );
  }
  for (const [key, field] of Object.entries(shape)) {
    const flags = { preserves: false, embeddedMetadata: preserves && key === 'metadata' };
    visitSchema(field, `${path}.${key}`, { ...context, flags });
  }
}

function visitRecord({ keyType, valueType }: Definition, path: string, context: Context): void {
  const key = keyType?.def as Definition | undefined;
  if (key?.type !== 'string' || (key.checks ?? []).length > 0 || 'format' in key) {
    report(
      context,
      path,
      'keys of a map cannot be constrained by the schema; use z.string() and a CEL rule on the map',
    );
  }
  if (valueType !== undefined) visitSchema(valueType, `${path}.*`, { ...context, flags: noFlags });
}

function visitInner({ innerType }: Definition, path: string, context: Context): void {
  if (innerType !== undefined) visitSchema(innerType, path, context);
}

function visitDefault(definition: Definition, path: string, context: Context): void {
  visitInner(definition, path, context);
  if (context.problems.some((problem) => problem.path.startsWith(path))) return;
  if (definition.defaultValue === null) {
    report(context, path, 'the server ignores a default of null; remove it and make the field .nullable().optional()');
    return;
  }
  const parsed = definition.innerType?.safeParse(definition.defaultValue);
  if (parsed === undefined || parsed.success) return;
  for (const issue of parsed.error.issues) {
    const at = issue.path.map((key) => `.${String(key)}`).join('');
    report(context, path, `the default does not fit the schema: ${at === '' ? '' : `${at}: `}${issue.message}`);
  }
}

function report(context: Context, path: string, message: string): void {
  context.problems.push({ path, message });
}
