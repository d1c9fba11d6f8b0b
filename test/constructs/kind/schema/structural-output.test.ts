import { z } from 'zod';
import { cel } from '../../../../constructs/kind/schema/cel';
import type { Problem } from '../../../../constructs/kube/errors';
import {
  anyValue,
  embeddedResource,
  immutable,
  intOrString,
  listMap,
  preserveUnknownFields,
  quantity,
  stringMap,
  withRule,
} from '../../../../constructs/kind/fields';
import { toStructuralSchema } from '../../../../constructs/kind/schema/structural-schema';

function nodeOf(field: z.ZodType): Record<string, unknown> {
  const problems: Problem[] = [];
  const schema = toStructuralSchema(z.object({ field: field.describe('A field.') }), 'spec', problems);
  expect(problems).toEqual([]);
  const { description, ...node } = (schema.properties as { field: Record<string, unknown> }).field;
  expect(description).toBe('A field.');
  return node;
}

describe('a field becomes', () => {
  test.each<[string, z.ZodType, object]>([
    [
      'an integer that a double holds',
      z.int(),
      { type: 'integer', format: 'int64', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
    ],
    [
      'an integer above',
      z.int().gt(3),
      { type: 'integer', format: 'int64', minimum: 4, maximum: Number.MAX_SAFE_INTEGER },
    ],
    [
      'an integer above a fraction',
      z.int().gt(3.5).lt(5.5),
      { type: 'integer', format: 'int32', minimum: 4, maximum: 5 },
    ],
    [
      'an integer from a fraction',
      z.int().gte(3.5).lte(5.5),
      { type: 'integer', format: 'int32', minimum: 4, maximum: 5 },
    ],
    ['an integer of 32 bits', z.int32().min(0), { type: 'integer', format: 'int32', minimum: 0, maximum: 2147483647 }],
    ['a number above', z.number().gt(0.5).lte(2), { type: 'number', minimum: 0.5, exclusiveMinimum: true, maximum: 2 }],
    ['a number', z.number(), { type: 'number' }],
    ['a text', z.string().min(1).max(3), { type: 'string', minLength: 1, maxLength: 3 }],
    ['a choice', z.enum(['a', 'b']), { type: 'string', enum: ['a', 'b'] }],
    ['a constant', z.literal('a'), { type: 'string', enum: ['a'] }],
    ['a number of few', z.literal([1, 2]), { type: 'integer', enum: [1, 2], format: 'int64' }],
    ['null or a text', z.string().nullable(), { type: 'string', nullable: true }],
    [
      'a text of two patterns',
      z.string().startsWith('a').endsWith('z'),
      { type: 'string', allOf: [{ pattern: '^a.*' }, { pattern: '.*z$' }] },
    ],
    [
      'a text of either sort',
      z.union([z.literal('auto'), z.string().regex(/^[0-9]$/)]),
      { type: 'string', anyOf: [{ enum: ['auto'] }, { pattern: '^[0-9]$' }] },
    ],
    ['a pattern with slashes', z.string().regex(/^a\/b$/), { type: 'string', pattern: '^a/b$' }],
    [
      'a map',
      stringMap({ maxProperties: 2, maxLength: 3 }),
      { type: 'object', maxProperties: 2, additionalProperties: { type: 'string', maxLength: 3 } },
    ],
    ['an object', z.object({}), { type: 'object' }],
    [
      'an open object',
      preserveUnknownFields(z.object({})),
      { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    ],
    ['any value', anyValue(), { 'x-kubernetes-preserve-unknown-fields': true }],
    [
      'a number or a text',
      intOrString({ maxLength: 5 }),
      {
        minimum: -2147483648,
        maximum: 2147483647,
        maxLength: 5,
        anyOf: [{ type: 'integer' }, { type: 'string' }],
        'x-kubernetes-int-or-string': true,
      },
    ],
    ['a text with an id for other readers', z.string().meta({ id: 'a-shared-name' }), { type: 'string' }],
    ['read-only as any other', z.string().readonly(), { type: 'string' }],
  ])('%s', (_, field, expected) => {
    expect(nodeOf(field)).toEqual(expected);
  });

  test('a resource', () => {
    expect(nodeOf(embeddedResource())).toEqual({
      type: 'object',
      required: ['apiVersion', 'kind'],
      properties: {
        apiVersion: { description: expect.any(String) as string, type: 'string', minLength: 1 },
        kind: { description: expect.any(String) as string, type: 'string', minLength: 1 },
        metadata: { description: expect.any(String) as string, type: 'object' },
      },
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    });
  });

  test('a list with keys', () => {
    const item = z.object({ name: z.string().describe('A name.') });
    expect(nodeOf(listMap(item, ['name'], { maxItems: 2, minItems: 1 }))).toEqual({
      type: 'array',
      minItems: 1,
      maxItems: 2,
      items: { type: 'object', required: ['name'], properties: { name: { description: 'A name.', type: 'string' } } },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    });
  });
});

describe('rules and metadata', () => {
  const rules = (field: z.ZodType): unknown =>
    (nodeOf(field)['x-kubernetes-validations'] as { rule: string }[]).map(({ rule }) => rule);
  const one = cel('self != "1"', 'not 1');
  const two = cel('self != "2"', 'not 2');

  test('accumulate, through wrappers and checks too', () => {
    const text = z.string().max(5);
    expect(rules(withRule(withRule(text, one), two))).toEqual([one.rule, two.rule]);
    expect(rules(withRule(withRule(text, one).optional(), two))).toEqual([one.rule, two.rule]);
    expect(rules(withRule(withRule(text, one).nullable().default('x'), two))).toEqual([one.rule, two.rule]);
    expect(rules(withRule(text, one).min(1).optional().default('x'))).toEqual([one.rule]);
    expect(rules(immutable(withRule(text, one)).describe('B.').meta({ title: 'T' }))).toEqual([
      one.rule,
      'self == oldSelf',
    ]);
  });

  test('survive optional, default and describe', () => {
    const node = nodeOf(immutable(quantity()).describe('Lost.').default('1').optional());
    expect(node).toMatchObject({
      default: '1',
      'x-kubernetes-int-or-string': true,
      pattern: expect.any(String) as string,
    });
    expect(node['x-kubernetes-validations']).toHaveLength(1);
  });

  test('survive preserveUnknownFields', () => {
    const object = withRule(z.object({ a: z.int().describe('A.') }), cel('self.a > 0', 'm'), ({ a }) => a > 0);
    const open = preserveUnknownFields(object);
    expect(rules(open)).toEqual(['self.a > 0']);
    expect(open.safeParse({ a: 1, b: 2 })).toEqual({ success: true, data: { a: 1, b: 2 } });
    expect(open.safeParse({ a: 0 }).success).toBe(false);
  });
});

test('the result is deeply frozen and its order is stable', () => {
  const make = (): unknown =>
    toStructuralSchema(
      z.object({ b: quantity().optional().describe('B.'), a: z.array(z.string()).default(['x']).describe('A.') }),
      'spec',
      [],
    );
  const schema = make() as { properties: { a: { default: string[]; items: object } } };
  expect(Object.keys(schema.properties)).toEqual(['b', 'a']);
  expect(JSON.stringify(make())).toBe(JSON.stringify(schema));
  for (const part of [schema, schema.properties, schema.properties.a.default, schema.properties.a.items]) {
    expect(Object.isFrozen(part)).toBe(true);
  }
});
