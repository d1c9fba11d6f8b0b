import { z } from 'zod';
import { cel } from '../../../../constructs/kind/schema/cel';
import type { Problem } from '../../../../constructs/kube/errors';
import { anyValue, atomicList, immutable, listMap, mapOf, withRule } from '../../../../constructs/kind/fields';
import { toStructuralSchema } from '../../../../constructs/kind/schema/structural-schema';

/** The problems of a field named `field`, one line each. */
function problemsOf(field: z.ZodType, describe = true): string[] {
  const problems: Problem[] = [];
  toStructuralSchema(z.object({ field: describe ? field.describe('A field.') : field }), 'spec', problems);
  return problems.map(({ path, message }) => `${path}: ${message}`);
}

interface Tree {
  readonly children: readonly Tree[];
}
const tree: z.ZodType<Tree> = z.lazy(() => z.object({ children: z.array(tree).describe('Trees.') }));
const recursive = z.object({
  name: z.string().describe('A name.'),
  get next() {
    return recursive.optional().describe('The next one.');
  },
});

describe('types that no JSON has, or that are not structural', () => {
  test.each<[string, z.ZodType, RegExp]>([
    ['any', z.any(), /^spec\.field: says nothing.*anyValue\(\)/],
    ['unknown', z.unknown(), /anyValue\(\)/],
    ['bigint', z.bigint(), /bigint.*z\.int\(\)/],
    ['date', z.date(), /z\.iso\.datetime\(\)/],
    ['undefined', z.undefined(), /\.optional\(\)/],
    ['void', z.void(), /\.optional\(\)/],
    ['null', z.null(), /\.nullable\(\)/],
    ['symbol', z.symbol(), /symbol/],
    ['never', z.never(), /leave the field out/],
    ['nan', z.nan(), /NaN/],
    ['set', z.set(z.string()), /listSet\(\)/],
    ['map', z.map(z.string(), z.string()), /mapOf\(\)/],
    ['tuple', z.tuple([z.string()]), /tuple/],
    ['custom', z.custom<string>(() => true), /withRule/],
    ['transform', z.string().transform((value) => value.length), /transformation/],
    ['preprocess', z.preprocess(String, z.string()), /transformation/],
    ['stringbool', z.stringbool(), /transformation/],
    ['catch', z.string().catch('x'), /z\.catch/],
    ['coerce', z.coerce.number(), /z\.coerce/],
    ['trim', z.string().trim(), /changes its value/],
    ['a bare refinement', z.string().refine((value) => value !== 'x'), /withRule\(schema, cel\(/],
    ['intersection', z.intersection(z.object({}), z.object({})), /extend/],
    ['lazy', tree, /contain itself/],
    ['recursive', recursive, /contains itself/],
    ['strictObject', z.strictObject({}), /unknown fields cannot be forbidden.*z\.object/],
    ['looseObject', z.looseObject({}), /preserveUnknownFields/],
    ['catchall', z.object({}).catchall(z.string()), /mapOf/],
    ['a record of enum keys', z.record(z.enum(['a']), z.string()), /keys of a map/],
    ['a record of constrained keys', z.record(z.string().regex(/^a/), z.string()), /keys of a map/],
    ['a union of types', z.union([z.string(), z.int()]), /"anyOf" of string and integer is not structural/],
    ['a union with null', z.union([z.string(), z.null()]), /\.nullable\(\)/],
    [
      'a discriminated union',
      z.discriminatedUnion('type', [
        z.object({ type: z.literal('a').describe('A.') }),
        z.object({ type: z.literal('b').describe('B.') }),
      ]),
      /"oneOf" of object is not structural/,
    ],
    ['literals of two types', z.literal(['a', 1]), /several types/],
    ['a nullable enum', z.enum(['a']).nullable(), /admits no null/],
    ['a default of null', z.string().nullable().default(null), /ignores a default of null/],
    ['a default that does not fit', z.string().min(3).default('ab'), /the default does not fit/],
    ['not', z.string().meta({ not: { enum: ['x'] } }), /"not" is no keyword/],
    ['const', z.string().meta({ const: 'x' }), /"const" is no keyword/],
    ['patternProperties', z.string().meta({ patternProperties: {} }), /"patternProperties" is no keyword/],
    ['a format that Kubernetes does not know', z.string().meta({ format: 'colour' }), /the format "colour"/],
  ])('%s', (_, field, expected) => {
    const problems = problemsOf(field);
    expect(problems.join('\n')).toMatch(expected);
    expect(problems).toHaveLength(1);
  });

  test('the path leads through lists, maps and objects', () => {
    const field = z.array(
      z.object({ map: mapOf(z.object({ deep: z.date().describe('A.') }), { maxProperties: 1 }).describe('B.') }),
    );
    expect(problemsOf(field)).toEqual([expect.stringMatching(/^spec\.field\[\]\.map\.\*\.deep: a Date/)]);
  });

  test('every field needs a description', () => {
    expect(problemsOf(z.string(), false)).toEqual(['spec.field: it has no description; add .describe("...")']);
    expect(problemsOf(z.array(z.object({ inner: z.string() })))).toEqual([
      'spec.field[].inner: it has no description; add .describe("...")',
    ]);
  });
});

describe('patterns', () => {
  test.each<[RegExp, RegExp]>([
    [/^(?=a)b/, /look-ahead/],
    [/^(?!a)b/, /look-ahead/],
    [/(?<=a)b/, /look-behind/],
    [/(?<!a)b/, /look-behind/],
    [/(a)\1/, /back-reference/],
    [/(?<x>a)\k<x>/, /back-reference/],
    [/a{1001}/, /at most 1000/],
    [/a{2,1001}/, /at most 1000/],
    [/(a{500}){500}/, /nested repetitions multiplied/],
    [/((?:a{10}b){10}c){11}/, /nested repetitions multiplied/],
    [/^\s$/, /fewer characters/],
    [/^\S$/, /more characters/],
    [/\é/, /no escape of "é"/],
    [/[a-\d]/, /no end of a range/],
    [/\u0041/, /escape/],
    [/[\b]/, /escape/],
    [/\cA/, /escape/],
    [/a[]/, /empty character class/],
    [/[[:alpha:]]/, /POSIX/],
    [/a/i, /flags/],
    [/a/u, /flags/],
  ])('%s', (pattern, expected) => {
    expect(problemsOf(z.string().regex(pattern)).join('\n')).toMatch(expected);
  });

  test.each([
    /(a{31}){31}/,
    /(a{500}[{}(]{2}){2}/,
    /[\d-]/,
    /[\w-z]/,
    /[\w-\d]/,
    /[-\w]/,
    /[^-\d]/,
    /\\\(a{9}\)/,
    /^[a-z\d]+$/,
    /\(\?=/,
    /a\/b/,
    /[\]\-]/,
    /(?:a|b){2,5}/,
    /\x41/,
    /\bword\b/,
    /(?<name>a)/,
    /[(?=]/,
  ])('%s is RE2 too', (pattern) => {
    expect(problemsOf(z.string().regex(pattern))).toEqual([]);
  });
});

describe('list maps', () => {
  const item = z.object({
    name: z.string().describe('A.'),
    optional: z.string().optional().describe('B.'),
    list: z.array(z.string()).describe('C.'),
  });
  const raw = (meta: Record<string, unknown>): z.ZodType => z.array(item).meta(meta);

  test.each<[string, z.ZodType, RegExp]>([
    ['a key twice', listMap(item, ['name', 'name'], { maxItems: 1 }), /stands twice/],
    ['an optional key', listMap(item, ['optional'], { maxItems: 1 }), /must be required or have a default/],
    ['a list as key', listMap(item, ['list'], { maxItems: 1 }), /must be a scalar/],
    ['no keys', raw({ 'x-kubernetes-list-type': 'map' }), /at least one key/],
    [
      'an unknown key',
      raw({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['x'] }),
      /no field of the items/,
    ],
    ['keys without the type', raw({ 'x-kubernetes-list-map-keys': ['name'] }), /need the list type "map"/],
    ['a set of objects', raw({ 'x-kubernetes-list-type': 'set' }), /must be scalars/],
    ['an unknown type', raw({ 'x-kubernetes-list-type': 'bag' }), /no list type/],
  ])('%s', (_, field, expected) => {
    expect(problemsOf(field).join('\n')).toMatch(expected);
  });
});

describe('CEL', () => {
  const bounded = z.string().max(10).describe('A.');
  const unbounded = z.string().describe('A.');
  const rule = cel('self.a == "x"', 'a must be x');

  test.each<[string, z.ZodType, string]>([
    [
      'a string under a rule',
      withRule(z.string(), cel('self.startsWith("a")', 'm')),
      'spec.field: give the string a maximum',
    ],
    [
      'a field that a rule reads',
      withRule(z.object({ a: unbounded }), rule),
      'spec.field.a: give the string a maximum',
    ],
    [
      'a list that a rule reads',
      withRule(z.object({ a: z.array(bounded).describe('A.') }), cel('self.a.all(x, x != "")', 'm')),
      'spec.field.a: give the list a maximum',
    ],
    [
      'items that a rule reads',
      withRule(z.array(z.object({ a: unbounded })).max(3), cel('self.all(x, x.a != "")', 'm')),
      'spec.field[].a: give the string a maximum',
    ],
    [
      'a map that a rule reads',
      withRule(z.record(z.string(), bounded), cel('size(self) < 3', 'm')),
      'spec.field: give the map a maximum',
    ],
    [
      'all below self as a whole',
      immutable(z.object({ a: z.object({ b: unbounded }).describe('A.') })),
      'spec.field.a.b: give the string a maximum',
    ],
    [
      'all below a field as a whole',
      withRule(z.object({ a: z.object({ b: unbounded }).describe('A.') }), cel('self.a == oldSelf.a', 'm')),
      'spec.field.a.b: give the string a maximum',
    ],
    [
      'items compared as a whole',
      withRule(z.array(z.object({ a: unbounded })).max(3), cel('self.all(x, self.exists(y, x == y))', 'm')),
      'spec.field[].a: give the string a maximum',
    ],
    ['a list around a rule', z.array(withRule(z.object({ a: bounded }), rule)), 'spec.field: give the list a maximum'],
    [
      'a map around a rule',
      z.record(z.string(), withRule(z.object({ a: bounded }), rule)),
      'spec.field: give the map a maximum',
    ],
    [
      'a transition rule below a list without keys',
      atomicList(z.object({ a: immutable(z.string().max(3)).describe('A.') }), { maxItems: 3 }),
      'has no keys to tell its items',
    ],
    [
      'too many repetitions',
      z.array(z.array(z.array(withRule(z.int(), cel('self > 0', 'm'))).max(1000)).max(1000)).max(1000),
      'may run 1000000000 times',
    ],
    ['a message of two lines', withRule(z.int(), cel('self > 0', 'a\nb')), 'one line'],
    ['an empty rule', withRule(z.int(), cel(' ', 'm')), 'empty'],
    [
      'a fieldPath to nowhere',
      withRule(z.object({ a: bounded }), cel('self.a == "x"', 'm', { fieldPath: '.b' })),
      'names no field',
    ],
  ])('%s', (_, field, expected) => {
    expect(problemsOf(field).join('\n')).toContain(expected);
  });

  test.each<[string, z.ZodType]>([
    ['a field that no rule reads', withRule(z.object({ a: bounded, b: unbounded }), rule)],
    [
      'a field that is only tested for',
      withRule(z.object({ a: bounded, b: unbounded.optional() }), cel('has(self.b) || self.a == "x"', 'm')),
    ],
    ['a name that stands in a text only', withRule(z.object({ a: bounded, b: unbounded }), cel('self.a == "b"', 'm'))],
    ['an enum', withRule(z.enum(['a', 'b']), cel('self == oldSelf', 'm'))],
    ['a number', immutable(z.int())],
    ['keyed items', listMap(z.object({ k: bounded, v: immutable(bounded).describe('V.') }), ['k'], { maxItems: 3 })],
    ['a fieldPath', withRule(z.object({ a: bounded }), cel('self.a == "x"', 'm', { fieldPath: '.a' }))],
    ['any value', anyValue()],
  ])('%s needs no bound', (_, field) => {
    expect(problemsOf(field)).toEqual([]);
  });
});
