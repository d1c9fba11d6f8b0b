const INT32_MIN = -2147483648;
const INT32_MAX = 2147483647;

type Keywords = Readonly<Record<string, unknown>>;

/**
 * An integer's bounds as a CRD has them: inclusive, and with the format that they fit in. Those that every integer of JavaScript
 * has are kept: the API server alone would admit what zod then refuses, since a double cannot hold it exactly (RFC 8259, section 6).
 */
export function boundedInteger(node: Keywords): Record<string, unknown> {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, ...rest } = node;
  const least = inclusive(minimum, exclusiveMinimum === true, Math.floor, 1);
  const most = inclusive(maximum, exclusiveMaximum === true, Math.ceil, -1);
  const fits = least !== undefined && most !== undefined && least >= INT32_MIN && most <= INT32_MAX;
  return {
    ...rest,
    format: fits ? 'int32' : 'int64',
    ...(least === undefined ? {} : { minimum: least }),
    ...(most === undefined ? {} : { maximum: most }),
  };
}

/** A bound made inclusive: above 3 is at least 4, above 3.5 is at least 4, at least 3.5 is at least 4. */
function inclusive(
  bound: unknown,
  exclusive: boolean,
  towards: (value: number) => number,
  step: number,
): number | undefined {
  if (typeof bound !== 'number') return undefined;
  if (exclusive) return towards(bound) + step;
  return Number.isInteger(bound) ? bound : towards(bound) + step;
}
