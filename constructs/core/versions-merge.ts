import { isObject } from './is-object';

/**
 * What somebody changed, put on what was kept: where `now` is as `base`, `kept` stands; elsewhere `now` does. Objects are merged field
 * by field, lists as a whole.
 */
export function mergeKept(kept: unknown, base: unknown, now: unknown): unknown {
  if (sameJson(base, now)) return kept;
  if (!isObject(kept) || !isObject(base) || !isObject(now)) return now;
  const keys = new Set([...Object.keys(now), ...Object.keys(kept)]);
  const merged = [...keys].map((key) => [key, mergeKept(own(kept, key), own(base, key), own(now, key))] as const);
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
}

/** Whether two values are the same JSON, whatever the order of their keys; an undefined field counts as an absent one. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => sameJson(item, (b as unknown[])[i]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => sameJson(own(a, key), own(b, key)));
}

/** A value without the fields that are undefined, as JSON would carry it. */
export function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined);
  if (!isObject(value)) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(fields.map(([key, field]) => [key, withoutUndefined(field)]));
}

function own(object: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
