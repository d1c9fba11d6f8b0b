import * as fc from 'fast-check';
import type { Json, JsonObject } from '../../constructs/kube/kube-object';
import type { StructuralSchema } from '../../constructs/kind/schema/structural-schema';

/** Values of the kind that people get wrong. */
const INVALID_VALUES: readonly Json[] = [
  ...[
    '',
    ' ',
    'A',
    'a-',
    '-a',
    'a.b',
    'a..b',
    'ä',
    'a b',
    'a\nb',
    '1st',
    '../../etc',
    '$(id)',
    'a'.repeat(64),
    'a'.repeat(300),
  ],
  ...['1Gi', '1 Gi', '-1', '.5', '5.', '1e3', '1E', '0x1', '1Ki', '100m', '1u', 'true'],
  ...[
    '* * * * *',
    '*/5 1-3,7 * jan mon',
    '60 * * * *',
    '5-1 * * * *',
    '@hourly',
    '@every 1h',
    ' * * * *\t* ',
    '@hourly ',
    'Local',
    'utc',
    '0 0 31 2 *',
    '* * * *',
  ],
  ...[-1, 0, 1, 1.5, 11, 2 ** 31, 2 ** 31 - 1, 2 ** 53, true, false, null, [], {}, ['a'], { a: 'b' }],
];

/** Time zones, one of which does not exist. */
const ZONES = ['UTC', 'Europe/Berlin', 'Etc/GMT+3', 'Nowhere/AtAll'];

/** Specs that a schema's own keywords admit; rules across fields are not looked at. */
export function specArbitrary(schema: StructuralSchema): fc.Arbitrary<Json> {
  if (schema['x-kubernetes-int-or-string'] === true) return fc.oneof(fc.integer({ min: 0, max: 1000 }), textOf(schema));
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as Json[]));
  switch (schema.type) {
    case 'string':
      return textOf(schema);
    case 'integer':
      return numbersOf(schema);
    case 'boolean':
      return fc.boolean();
    case 'array':
      return fc.array(specArbitrary(schema.items as StructuralSchema), {
        minLength: count(schema.minItems, 0),
        maxLength: 3,
      });
    case 'object':
      return objectOf(schema);
    default:
      throw new TypeError(`no arbitrary for a schema of type ${String(schema.type)}`);
  }
}

/** Specs of which up to two fields are made wrong, or are missing, or are unknown. */
export function invalidSpecArbitrary(schema: StructuralSchema): fc.Arbitrary<Json> {
  const mistakes = fc.array(fc.tuple(fc.nat(), fc.constantFrom<Json>(...INVALID_VALUES), fc.nat(9)), {
    minLength: 1,
    maxLength: 2,
  });
  return fc
    .tuple(specArbitrary(schema), mistakes)
    .map(([spec, wrongs]) => wrongs.reduce((value, [where, wrong, how]) => corrupt(value, where, wrong, how), spec));
}

/** Names of objects, most of them valid. */
export const objectName: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constant('a-name') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('a.b', 'a'.repeat(52), 'a'.repeat(53), 'a'.repeat(63), 'a'.repeat(64), '1a', 'a--b'),
  },
);

function corrupt(value: Json, where: number, wrong: Json, how: number): Json {
  if (Array.isArray(value) && value.length > 0) {
    const at = where % value.length;
    return value.map((item, i) => (i === at ? corrupt(item, Math.floor(where / value.length), wrong, how) : item));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return wrong;
  if (how === 0) return { ...value, unknownField: wrong };
  const keys = Object.keys(value);
  const key = keys[where % keys.length];
  if (key === undefined) return wrong;
  if (how === 1) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
  return { ...value, [key]: corrupt(value[key] ?? null, Math.floor(where / keys.length), wrong, how) };
}

function objectOf(schema: StructuralSchema): fc.Arbitrary<JsonObject> {
  if (schema.additionalProperties !== undefined) {
    const key = fc.stringMatching(/^[a-z]{1,8}$/);
    return fc.dictionary(key, specArbitrary(schema.additionalProperties as StructuralSchema), { maxKeys: 3 });
  }
  const properties = Object.entries((schema.properties ?? {}) as Record<string, StructuralSchema>);
  const model = Object.fromEntries(properties.map(([name, property]) => [name, specArbitrary(property)]));
  return fc.record(model, { requiredKeys: (schema.required ?? []) as string[] });
}

function textOf(schema: StructuralSchema): fc.Arbitrary<string> {
  const minLength = count(schema.minLength, 0);
  const maxLength = Math.min(count(schema.maxLength, 40), 40 + minLength);
  const pattern = patternOf(schema);
  // The server looks the name of a time zone up, which no pattern says.
  if (ruleTexts(schema).some((rule) => rule.includes('getFullYear(self)'))) return fc.constantFrom(...ZONES);
  if (pattern === undefined) return fc.string({ minLength, maxLength });
  const longest = count(schema.maxLength, Infinity);
  return fc.stringMatching(new RegExp(pattern)).filter((text) => text.length >= minLength && text.length <= longest);
}

/** The pattern of a string, which some have as a rule. A rule may be fulfilled otherwise too, or ask for more. */
function patternOf(schema: StructuralSchema): string | undefined {
  if (typeof schema.pattern === 'string') return schema.pattern;
  return ruleTexts(schema).flatMap(
    (rule) => /^(?:self[.]contains\('\w+'\) [|]{2} )?self[.]matches\('(.*?)'\)/.exec(rule)?.[1] ?? [],
  )[0];
}

function ruleTexts(schema: StructuralSchema): readonly string[] {
  const rules = (schema['x-kubernetes-validations'] ?? []) as readonly { readonly rule: string }[];
  return rules.map(({ rule }) => rule);
}

function numbersOf(schema: StructuralSchema): fc.Arbitrary<number> {
  const min = count(schema.minimum, -1000);
  return fc.integer({ min, max: Math.min(count(schema.maximum, 1000), Math.max(min, 1000)) });
}

function count(keyword: unknown, fallback: number): number {
  return typeof keyword === 'number' ? keyword : fallback;
}
