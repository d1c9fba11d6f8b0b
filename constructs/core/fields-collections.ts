import { z } from 'zod';
import { mirroredRefinement, withMeta } from './fields-rules';

/** How many entries a list may have. CEL needs an upper bound on all that it may touch. */
export interface ListLimits {
  readonly maxItems: number;
  /** @default 0 */
  readonly minItems?: number;
}

/** How large a map of strings may be. */
export interface StringMapLimits {
  readonly maxProperties: number;
  /** Longest value, in characters. */
  readonly maxLength: number;
}

/** The fields of an item that can be a key of a list map. */
type KeyOf<I extends z.ZodObject> = Extract<keyof z.output<I>, string>;

/**
 * A list whose items are told apart by `keys`: several field managers may each own items, and two items of one key are refused.
 * Each key must be a scalar that is required or has a default.
 * Source: KEP-555, `x-kubernetes-list-type: map`.
 */
export function listMap<I extends z.ZodObject>(
  item: I,
  keys: readonly [KeyOf<I>, ...KeyOf<I>[]],
  limits: ListLimits,
): z.ZodArray<I> {
  const keyOf = (value: unknown): string => stableKey(keys.map((key) => (value as Record<string, unknown>)[key]));
  return withMeta(unique(bounded(item, limits), keyOf, keys.join(' and ')), {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [...keys],
  });
}

/** A list of scalars in which no value stands twice. Source: KEP-555, `x-kubernetes-list-type: set`. */
export function listSet<I extends z.ZodType<string | number | boolean>>(item: I, limits: ListLimits): z.ZodArray<I> {
  return withMeta(unique(bounded(item, limits), stableKey, 'value'), { 'x-kubernetes-list-type': 'set' });
}

/** A list that one field manager owns as a whole. Source: KEP-555, `x-kubernetes-list-type: atomic`. */
export function atomicList<I extends z.ZodType>(item: I, limits: ListLimits): z.ZodArray<I> {
  return withMeta(bounded(item, limits), { 'x-kubernetes-list-type': 'atomic' });
}

/** A map from strings to strings, such as labels. */
export function stringMap(limits: StringMapLimits): z.ZodRecord<z.ZodString, z.ZodString> {
  return mapOf(z.string().max(limits.maxLength), limits);
}

/** A map from strings to values of one schema. */
export function mapOf<V extends z.ZodType>(
  value: V,
  { maxProperties }: { readonly maxProperties: number },
): z.ZodRecord<z.ZodString, V> {
  const schema = mirroredRefinement(z.record(z.string(), value), (map) => Object.keys(map).length <= maxProperties, {
    message: `must have at most ${maxProperties} entries`,
  });
  return withMeta(schema, { maxProperties });
}

function bounded<I extends z.ZodType>(item: I, { maxItems, minItems }: ListLimits): z.ZodArray<I> {
  const list = z.array(item).max(maxItems);
  return minItems === undefined ? list : list.min(minItems);
}

function unique<I extends z.ZodType>(
  list: z.ZodArray<I>,
  keyOf: (item: unknown) => string,
  what: string,
): z.ZodArray<I> {
  return mirroredRefinement(list, (items) => new Set(items.map(keyOf)).size === items.length, {
    message: `no two entries may have the same ${what}`,
  });
}

function stableKey(value: unknown): string {
  return JSON.stringify(value);
}
