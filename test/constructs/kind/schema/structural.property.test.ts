import fc from 'fast-check';
import { z } from 'zod';
import { cel } from '../../../../constructs/kind/schema/cel';
import type { Problem } from '../../../../constructs/kube/errors';
import {
  anyValue,
  dnsLabel,
  immutable,
  intOrString,
  listSet,
  mapOf,
  quantity,
  stringMap,
  withRule,
} from '../../../../constructs/kind/fields';
import { toStructuralSchema, unknownFields } from '../../../../constructs/kind/schema/structural-schema';

const scalar = fc.oneof(
  fc.nat(20).map((max) => z.string().max(max + 1)),
  fc.constantFrom(
    z.boolean(),
    z.int(),
    z.int32().min(1),
    z.number().gt(0),
    z.enum(['a', 'b']),
    z.literal('x'),
    z.iso.datetime(),
    dnsLabel(),
    quantity(),
    intOrString(),
    anyValue(),
    z.union([z.literal('auto'), z.string().regex(/^[0-9]+$/)]),
    stringMap({ maxProperties: 3, maxLength: 5 }),
    listSet(z.string().max(3), { maxItems: 3 }),
    immutable(z.string().max(9)),
    withRule(z.string().max(9), cel('self != "x"', 'not x'), (value) => value !== 'x'),
  ),
);

const { schema: anySchema } = fc.letrec<{ schema: z.ZodType; object: z.ZodType }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'schema' },
    { arbitrary: scalar, weight: 4 },
    { arbitrary: tie('object'), weight: 2 },
    { arbitrary: tie('schema').map((item) => z.array(z.object({ item: item.describe('I.') })).max(3)), weight: 1 },
    { arbitrary: tie('schema').map((value) => mapOf(value, { maxProperties: 2 })), weight: 1 },
  ),
  object: fc
    .dictionary(fc.stringMatching(/^[a-z]{1,6}$/), fc.tuple(tie('schema'), fc.boolean()), { maxKeys: 4 })
    .map((fields) =>
      z.object(
        Object.fromEntries(
          Object.entries(fields).map(([key, [field, optional]]) => [
            key,
            (optional ? field.optional() : field).describe('A field.'),
          ]),
        ),
      ),
    ),
}));

const ALLOWED = new Set([
  'title',
  'description',
  'type',
  'format',
  'nullable',
  'enum',
  'default',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'exclusiveMinimum',
  'maximum',
  'multipleOf',
  'minItems',
  'maxItems',
  'maxProperties',
  'allOf',
  'anyOf',
  'items',
  'required',
  'properties',
  'additionalProperties',
]);

function check(node: Record<string, unknown>): void {
  const keywords = Object.keys(node);
  expect(keywords.filter((keyword) => !ALLOWED.has(keyword) && !keyword.startsWith('x-kubernetes-'))).toEqual([]);
  const isFree = node['x-kubernetes-int-or-string'] === true || node['x-kubernetes-preserve-unknown-fields'] === true;
  if (!isFree) expect(['object', 'array', 'string', 'integer', 'number', 'boolean']).toContain(node.type);
  if (node.properties !== undefined) expect(node.additionalProperties).toBeUndefined();
  expect(node.additionalProperties).not.toBe(false);
  for (const branch of [node.anyOf, node.allOf].flat() as (Record<string, unknown> | undefined)[]) {
    if (branch !== undefined && node['x-kubernetes-int-or-string'] !== true) expect(branch).not.toHaveProperty('type');
  }
  const fields = Object.values((node.properties ?? {}) as Record<string, unknown>);
  const below: unknown[] = [node.items, node.additionalProperties, ...fields];
  for (const child of below) if (child !== undefined) check(child as Record<string, unknown>);
}

test('what is supported becomes structural: a type at each node, no forbidden keyword', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), anySchema, { maxKeys: 4 }), (fields) => {
      const described = Object.fromEntries(
        Object.entries(fields).map(([key, field]) => [key, field.describe('A field.')]),
      );
      const problems: Problem[] = [];
      const schema = toStructuralSchema(z.object(described), 'spec', problems);
      // A transition rule below a list without keys is refused, and rightly.
      expect(problems.filter(({ message }) => !message.includes('has no keys'))).toEqual([]);
      check(schema);
      expect(unknownFields(schema, { 'not-a-field': 1 }, 'spec')).toHaveLength(1);
    }),
    { numRuns: 300 },
  );
});
