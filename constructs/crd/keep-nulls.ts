import { isObject } from '../core/is-object';

/**
 * A value as `synthesized`, with the nulls of `written` put back: cdk8s drops them, and a nullable field may well be null.
 * What was removed or changed since is left as it is.
 */
export function keepNulls(synthesized: unknown, written: unknown): unknown {
  if (written === null) return synthesized ?? null;
  if (Array.isArray(written) && Array.isArray(synthesized)) {
    const items: readonly unknown[] = written;
    return synthesized.map((item: unknown, i) => (i < items.length ? keepNulls(item, items[i]) : item));
  }
  if (!isObject(written) || !isObject(synthesized)) return synthesized;
  const result: Record<string, unknown> = { ...synthesized };
  for (const [key, value] of Object.entries(written)) {
    if (value === null || key in result) result[key] = keepNulls(result[key], value);
  }
  return Object.fromEntries(Object.entries(result).sort(([a], [b]) => (a < b ? -1 : 1)));
}
