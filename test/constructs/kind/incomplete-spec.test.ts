import fc from 'fast-check';
import { z } from 'zod';
import { defineKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { convertObject } from '../../../constructs/kind/conversion';
import { completedSpecs } from '../../../constructs/kind/incomplete-spec';
import { Shop } from './versions-kind';

// What the API server converts during server-side apply: objects without some of their fields.

const [v1, v1beta1, v1alpha1] = ['v1', 'v1beta1', 'v1alpha1'].map((version) => `test.example.com/${version}`) as [
  string,
  string,
  string,
];

const shop = (apiVersion: string, spec: object): KubeObject => ({
  ...{ apiVersion, kind: 'Shop', metadata: { name: 'corner', namespace: 'default' }, spec },
});

const bare = {
  ...{ group: 'test.example.com', version: 'v1', kind: 'Bare', plural: 'bares', scope: 'Namespaced' as const },
  ...{ description: 'A kind.', owns: [], children: () => undefined },
};

test('what depends on a required field that is missing is missing as well', () => {
  expect(convertObject(Shop, shop(v1beta1, { replicas: 3 }), v1, { incomplete: true }).spec).toEqual({ size: 3 });
  expect(convertObject(Shop, shop(v1, { ports: [80] }), v1beta1, { incomplete: true }).spec).toEqual({ replicas: 1 });
  expect(convertObject(Shop, shop(v1alpha1, { owner: 'ann' }), v1beta1, { incomplete: true }).spec).toEqual({
    replicas: 1,
  });
  // Of a whole object, the other version had less.
  const whole = convertObject(Shop, shop(v1, { image: 'a', limits: { cpu: '1' } }), v1beta1);
  expect(convertObject(Shop, { ...whole, spec: { replicas: 2 } }, v1, { incomplete: true }).spec).toEqual({
    size: 2,
    limits: { cpu: '1' },
  });
});

test.each<[string, object, object]>([
  ['nothing', {}, { always: 'here' }],
  [
    'a text',
    { flag: true, count: 1, kinds: ['k'], mode: 'a', nested: { deep: 'x' } },
    { always: 'here', flag: 'true', count: 2, kinds: 'k', mode: 'A', deep: 'x' },
  ],
  [
    'a field below',
    { text: 'x', flag: false, count: 1, kinds: ['k'], mode: 'b', nested: {} },
    { always: 'here', text: 'x!', length: 1, flag: 'false', count: 2, kinds: 'k', mode: 'B' },
  ],
])('without %s the rest is converted', (_, spec, expected) => {
  const text = z.string().min(1).max(9);
  const Wide = defineKind({
    ...bare,
    kind: 'Wide',
    plural: 'wides',
    spec: z.object({
      ...{
        always: text.describe('A.'),
        text: text.optional().describe('T.'),
        length: z.int32().optional().describe('L.'),
      },
      ...{
        flag: text.optional().describe('F.'),
        count: z.int32().optional().describe('C.'),
        kinds: text.optional().describe('K.'),
      },
      ...{ mode: text.optional().describe('M.'), deep: text.optional().describe('D.') },
    }),
    versions: [
      {
        version: 'v1beta1',
        spec: z.object({
          text: text.regex(/^[x-z]+$/).describe('T.'),
          flag: z.boolean().describe('F.'),
          count: z.int32().min(1).describe('C.'),
          kinds: z.array(text).max(9).describe('K.'),
          mode: z.enum(['a', 'b']).describe('M.'),
          nested: z.object({ deep: text.describe('D.') }).describe('N.'),
        }),
        toCurrent({ text: own, flag, count, kinds, mode, nested }) {
          if (own === '12') throw new Error('it is a number');
          return {
            ...{ always: 'here', text: `${own}!`, length: own.length, flag: String(flag), count: count + 1 },
            ...{ kinds: kinds.join(), mode: mode.toUpperCase(), deep: nested.deep },
          };
        },
        fromCurrent: () => ({
          text: 'x',
          flag: true,
          count: 1,
          kinds: [],
          mode: 'a' as const,
          nested: { deep: 'x' },
        }),
      },
    ],
  });
  const object = { apiVersion: v1beta1, kind: 'Wide', metadata: { name: 'x' }, spec };
  expect(convertObject(Wide, object, v1, { incomplete: true }).spec).toEqual(expected);
});

test('a spec without what its converter cannot do without is refused by what it lacks', () => {
  const Picky = defineKind({
    ...bare,
    spec: z.object({ a: z.string().max(9).describe('A.') }),
    versions: [
      {
        version: 'v1beta1',
        spec: z.object({ day: z.string().max(9).describe('A date.') }),
        toCurrent: ({ day }) => ({ a: new Date(`${day}T00:00:00Z`).toISOString().slice(0, 4) }),
        fromCurrent: ({ a }) => ({ day: a }),
      },
    ],
  });
  const object = { apiVersion: v1beta1, kind: 'Bare', metadata: { name: 'x' }, spec: {} };
  expect(() => convertObject(Picky, object, v1, { incomplete: true })).toThrow('spec.day: is required');
});

describe('what only one version says', () => {
  const text = z.string().max(9);
  const Pair = defineKind({
    ...{ ...bare, kind: 'Pair', plural: 'pairs' },
    spec: z.object({
      name: text.describe('N.'),
      cpu: text.optional().describe('C.'),
      size: z.int32().optional().describe('S.'),
      isBig: z.boolean().optional().describe('Whether it is big.'),
      items: z
        .array(z.object({ id: text.describe('I.'), at: text.describe('A.'), more: text.optional().describe('M.') }))
        .max(9)
        .optional()
        .describe('I.'),
    }),
    versions: [
      {
        version: 'v1beta1',
        spec: z.object({
          name: text.optional().describe('N.'),
          halves: z.int32().min(0).describe('Half of the size.'),
          items: z
            .array(z.object({ id: text.describe('I.'), at: text.describe('A.'), more: text.optional().describe('M.') }))
            .max(9)
            .optional()
            .describe('I.'),
        }),
        toCurrent: ({ name = 'none', halves, items }) => ({ name, size: halves * 2, isBig: halves === 443, items }),
        fromCurrent: ({ name, size = 0, items }) => ({ name, halves: size / 2, items }),
      },
    ],
  });
  const pair = (apiVersion: string, spec: object): KubeObject => ({
    ...{ apiVersion, kind: 'Pair', metadata: { name: 'x' }, spec },
  });
  const convert = (object: KubeObject, to: string): KubeObject => convertObject(Pair, object, to, { incomplete: true });

  test('an object that was stored before a field was required is changed in the other version, and loses nothing', () => {
    const old = convert(pair(v1, { cpu: '7', size: 2, isBig: false }), v1beta1);
    expect(old.spec).toEqual({ halves: 1 });
    expect(convert(old, v1)).toEqual(pair(v1, { cpu: '7', size: 2, isBig: false }));
    expect(convert({ ...old, spec: { halves: 3 } }, v1).spec).toEqual({ cpu: '7', size: 6, isBig: false });
  });

  test('nothing is made up of what is missing', () => {
    expect(convert(pair(v1beta1, { name: 'a' }), v1)).toEqual(pair(v1, { name: 'a' }));
  });

  test('an item of a list that lacks something stays, with what it has', () => {
    const items = [
      { id: '1', more: 'm' },
      { id: '2', at: 'x' },
    ];
    expect(convert(pair(v1beta1, { halves: 1, items }), v1).spec).toMatchObject({ items });
  });

  test('what was there before does not change what is written', () => {
    const Sum = defineKind({
      ...{ ...bare, kind: 'Pair' },
      spec: z.object({
        ...{
          name: text.describe('N.'),
          x: z.int32().optional().describe('X.'),
          y: z.int32().optional().describe('Y.'),
        },
      }),
      versions: [
        {
          version: 'v1beta1',
          spec: z.object({ name: text.describe('N.'), total: z.int32().optional().describe('T.') }),
          toCurrent: ({ name, total }) => ({ name, x: total, y: 0 }),
          fromCurrent: ({ name, x = 0, y = 0 }) => ({ name, total: x + y }),
        },
      ],
    });
    const old = convertObject(Sum, pair(v1, { name: 'a', x: 1, y: 2 }), v1beta1);
    const changed = convertObject(Sum, { ...old, spec: { total: 10 } }, v1, { incomplete: true });
    expect(changed.spec).toEqual({ x: 10, y: 0 });
  });

  test('a converter whose result is not one of its version is refused', () => {
    const Odd = defineKind({
      ...{ ...bare, kind: 'Pair' },
      spec: z.object({ a: z.int32().describe('A.') }),
      versions: [
        {
          version: 'v1beta1',
          spec: z.object({ a: text.describe('A.'), b: text.describe('B.') }),
          toCurrent: ({ a }) => ({ a: Number(a) }),
          fromCurrent: ({ a }) => ({ a: String(a), b: 'b' }),
        },
      ],
    });
    const object = pair(v1beta1, { a: '3.7' });
    expect(() => convertObject(Odd, object, v1, { incomplete: true })).toThrow('spec.a: Invalid input: expected int');
  });
});

test('what is missing gets several values within its bounds', () => {
  const bound = fc.option(fc.integer({ min: -2_000_000, max: 2_000_000 }), { nil: undefined });
  fc.assert(
    fc.property(bound, bound, fc.constantFrom(undefined, 2, 5), fc.string(), (a, b, multipleOf, name) => {
      const [minimum, maximum] = a !== undefined && b !== undefined ? [Math.min(a, b), Math.max(a, b)] : [a, b];
      // At least two values.
      fc.pre(minimum === undefined || maximum === undefined || maximum - minimum >= 2 * (multipleOf ?? 1));
      fc.pre(name !== '__proto__');
      const schema = {
        type: 'object',
        required: [name],
        properties: { [name]: { type: 'integer', minimum, maximum, multipleOf } },
      };
      const values = completedSpecs(schema, {}).map((spec) => (spec as Record<string, number>)[name] ?? NaN);
      expect(new Set(values).size).toBeGreaterThan(1);
      for (const value of values) {
        expect(value).toBeGreaterThanOrEqual(minimum ?? -Infinity);
        expect(value).toBeLessThanOrEqual(maximum ?? Infinity);
        expect(Math.abs(value % (multipleOf ?? 1))).toBe(0);
      }
    }),
    { numRuns: 1000 },
  );
});
