import { z } from 'zod';
import { withMeta } from './schema/cel';

/**
 * A quantity as Kubernetes reads it: a decimal number and a suffix, binary, decimal or an exponent.
 * Source: `k8s.io/apimachinery/pkg/api/resource`. Exponents have at most two digits, far more than it
 * can represent.
 */
export const QUANTITY_PATTERN = '^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$';

const quantityRegExp = new RegExp(QUANTITY_PATTERN);

/** Longest quantity that the schema takes, in characters. */
const MAX_LENGTH = 64;

/** An amount of a resource, such as `500m`, `2` or `4Gi`: a quantity of Kubernetes, as a string or an integer. */
export function quantity(): z.ZodUnion<readonly [z.ZodInt, z.ZodString]> {
  const text = z.string().max(MAX_LENGTH).regex(quantityRegExp);
  const schema = z.union([z.int(), text], { error: 'must be a quantity such as 500m, 2 or 4Gi' });
  return withMeta(schema, { 'x-kubernetes-int-or-string': true });
}

/** Whether a value, for example one read from a server, is a quantity. */
export function isQuantity(value: unknown): value is string | number {
  return (typeof value === 'string' || typeof value === 'number') && quantityRegExp.test(String(value));
}

/**
 * Compares two quantities by value: negative, zero or positive as `a` is less than, equal to or greater than `b`.
 *
 * @throws TypeError when one of them is not a quantity
 */
export function compareQuantities(a: string | number, b: string | number): number {
  const [left, right] = [quantityToNano(a), quantityToNano(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** A quantity as a number, to the precision of a double. @throws TypeError when the value is not a quantity */
export function quantityToNumber(value: string | number): number {
  const nano = quantityToNano(value);
  return nano % NANO === 0n ? Number(nano / NANO) : Number(nano) / Number(NANO);
}

/**
 * A quantity in billionths, exactly. Finer fractions are rounded away from zero, as Kubernetes does.
 *
 * @throws TypeError when the value is not a quantity
 * @testonly
 */
export function quantityToNano(value: string | number): bigint {
  const text = String(value);
  const parts = quantityRegExp.test(text) ? PARTS.exec(text) : null;
  if (parts === null)
    throw new TypeError(`"${text}" is not a quantity; write a number and a suffix, such as 500m or 4Gi`);
  const [, sign, whole = '', fraction = '', suffix = '', exponent = ''] = parts;
  const digits = BigInt(`${whole}${fraction}`) * 1024n ** BigInt(binarySuffixes[suffix] ?? 0);
  const power = exponent === '' ? (decimalSuffixes[suffix] ?? 0) : Number(exponent);
  const magnitude = scaled(digits, power - fraction.length + 9);
  return sign === '-' ? -magnitude : magnitude;
}

const NANO = 1_000_000_000n;

const PARTS = /^([+-]?)([0-9]*)(?:[.]([0-9]*))?([a-zA-Z]*)([+-]?[0-9]*)$/;

/** Powers of ten. */
const decimalSuffixes: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};

/** Powers of 1024. */
const binarySuffixes: Readonly<Record<string, number>> = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 };

/** `digits` times ten to the `power`, rounded up. */
function scaled(digits: bigint, power: number): bigint {
  if (power >= 0) return digits * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  return (digits + divisor - 1n) / divisor;
}
