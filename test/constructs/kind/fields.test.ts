import { z } from 'zod';
import { cel } from '../../../constructs/kind/schema/cel';
import { immutable, listMap, listSet, withRule } from '../../../constructs/kind/fields';
import { compareQuantities, isQuantity, quantityToNano, quantityToNumber } from '../../../constructs/kind/quantity';
import fc from 'fast-check';

function messages(schema: z.ZodType, value: unknown): string[] {
  const parsed = schema.safeParse(value);
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
}

describe('withRule', () => {
  const positive = withRule(z.int(), cel('self > 0', 'must be positive'), (value) => value > 0);

  test('refuses in zod with the words of the rule', () => {
    expect(messages(positive, 0)).toEqual([': must be positive']);
    expect(messages(positive, 1)).toEqual([]);
  });

  test('does not look at what is absent or null, as the server', () => {
    const check = jest.fn(() => false);
    const schema = withRule(z.int().nullable().optional(), cel('false', 'never'), check);
    expect(messages(schema, undefined)).toEqual([]);
    expect(messages(schema, null)).toEqual([]);
    expect(check).not.toHaveBeenCalled();
    expect(messages(schema, 1)).toEqual([': never']);
  });

  test('names the field that the rule names', () => {
    const schema = withRule(z.object({ a: z.int() }), cel('self.a > 0', 'm', { fieldPath: '.a' }), ({ a }) => a > 0);
    expect(messages(schema, { a: 0 })).toEqual(['a: m']);
  });

  test('leaves the schema it is given alone', () => {
    const text = z.string();
    immutable(withRule(text, cel('true', 'm'), () => false));
    expect(text.meta()).toBeUndefined();
    expect(messages(text, 'x')).toEqual([]);
  });

  test('sees defaults, as the server', () => {
    const schema = withRule(z.object({ a: z.int().default(5) }), cel('self.a > 3', 'm'), ({ a }) => a > 3);
    expect(schema.parse({})).toEqual({ a: 5 });
  });
});

test('keys of a list map are compared with their defaults', () => {
  const schema = listMap(z.object({ name: z.string(), port: z.int().default(1) }), ['name', 'port'], { maxItems: 5 });
  expect(messages(schema, [{ name: 'a' }, { name: 'a', port: 2 }])).toEqual([]);
  expect(messages(schema, [{ name: 'a' }, { name: 'a', port: 1 }])).toEqual([
    ': no two entries may have the same name and port',
  ]);
});

test('a set tells a number from its text', () => {
  expect(messages(listSet(z.int(), { maxItems: 3 }), [1, 2])).toEqual([]);
  expect(messages(listSet(z.int(), { maxItems: 3 }), [1, 1])).toHaveLength(1);
});

describe('quantities', () => {
  test.each<[string | number, bigint, number]>([
    ['1', 1_000_000_000n, 1],
    [2, 2_000_000_000n, 2],
    [0.5, 500_000_000n, 0.5],
    ['1.', 1_000_000_000n, 1],
    ['.5', 500_000_000n, 0.5],
    ['500m', 500_000_000n, 0.5],
    ['1u', 1000n, 1e-6],
    ['1n', 1n, 1e-9],
    ['1k', 10n ** 12n, 1000],
    ['1M', 10n ** 15n, 1e6],
    ['1G', 10n ** 18n, 1e9],
    ['1T', 10n ** 21n, 1e12],
    ['1P', 10n ** 24n, 1e15],
    ['1E', 10n ** 27n, 1e18],
    ['1Ki', 1024n * 10n ** 9n, 1024],
    ['1.5Mi', 1572864n * 10n ** 9n, 1572864],
    ['1Ei', 2n ** 60n * 10n ** 9n, 2 ** 60],
    ['1e3', 10n ** 12n, 1000],
    ['1E3', 10n ** 12n, 1000],
    ['1e-3', 10n ** 6n, 0.001],
    ['+1', 10n ** 9n, 1],
    ['-1.5', -1_500_000_000n, -1.5],
    ['1e-10', 1n, 1e-9],
    ['-0.0000000001', -1n, -1e-9],
    ['0.1000', 10n ** 8n, 0.1],
  ])('%p', (value, nano, number) => {
    expect(quantityToNano(value)).toBe(nano);
    expect(quantityToNumber(value)).toBe(number);
  });

  test.each(['', '1 Gi', '1gi', '1mi', 'Gi', '1e', '1e1.5', '--1', '1.2.3', '.', 'NaN', '0x10', '1\n'])(
    '%p is none',
    (value) => {
      expect(isQuantity(value)).toBe(false);
      expect(() => quantityToNano(value)).toThrow(/is not a quantity; write a number and a suffix/);
    },
  );

  test('are compared by value', () => {
    expect(compareQuantities('1000m', 1)).toBe(0);
    expect(compareQuantities('1Gi', '1G')).toBe(1);
    expect(compareQuantities('100m', '0.2')).toBe(-1);
    expect(compareQuantities('9007199254740993', '9007199254740992')).toBe(1);
  });

  test('of whole numbers are those numbers', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.maxSafeInteger(), (a, b) => {
        expect(quantityToNumber(a)).toBe(a === 0 ? 0 : a);
        expect(compareQuantities(a, String(b))).toBe(Math.sign(a - b) + 0);
        expect(compareQuantities(`${a}k`, `${a}000`)).toBe(0);
      }),
    );
  });
});
