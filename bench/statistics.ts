/** What is told of a number of measurements. */
export interface Summary {
  readonly count: number;
  readonly min: number;
  readonly median: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * The value below which this share of the values lies, between two values if need be (the "linear" method, R-7).
 *
 * @param q from 0 to 1
 * @returns NaN when there are no values
 */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const below = sorted[Math.floor(at)] ?? NaN;
  const above = sorted[Math.ceil(at)] ?? NaN;
  return below + (above - below) * (at - Math.floor(at));
}

/** Median, extremes and 99th percentile. */
export function summarize(values: readonly number[]): Summary {
  return {
    count: values.length,
    min: quantile(values, 0),
    median: quantile(values, 0.5),
    p99: quantile(values, 0.99),
    max: quantile(values, 1),
  };
}
