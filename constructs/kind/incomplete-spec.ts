import { isObject } from '../kube/kube-object';
import type { StructuralSchema } from './schema/structural-schema';

/** Fewer than there are values, so that no two variants get the same one. */
const VARIANTS = 6;

/**
 * Specs that have a value for everything required that is missing from `spec`, each another one, and their defaults. What a function makes of
 * them in different ways depends on what is missing. The reverse is likely, but not certain: a function may treat all of these values alike.
 *
 * The values are of the right type and within the bounds of numbers, or of those that the schema lists. Patterns, formats and lengths are not
 * looked at.
 */
export function completedSpecs(schema: StructuralSchema, spec: unknown): readonly unknown[] {
  return Array.from({ length: VARIANTS }, (_, variant) =>
    completed(schema, structuredClone(spec), { variant, path: '' }),
  );
}

/** A spec with its defaults, whatever is missing from it. */
export function applyDefaults(schema: StructuralSchema, spec: unknown): unknown {
  return completed(schema, spec, undefined);
}

/** Which value something missing gets. */
interface Place {
  readonly variant: number;
  /** Where it is, so that two missing values are not alike. */
  readonly path: string;
}

const below = (place: Place | undefined, key: string | number): Place | undefined =>
  place && { ...place, path: `${place.path}.${key}` };

/** @param place - undefined: what is missing and has no default stays missing */
function completed(schema: StructuralSchema, value: unknown, place: Place | undefined): unknown {
  const { items, additionalProperties, properties } = schema;
  if (Array.isArray(value)) {
    return isObject(items) ? value.map((item, i) => completed(items, item, below(place, i))) : value;
  }
  if (!isObject(value)) return value;
  const fields = isObject(properties) ? properties : {};
  const known = Object.entries(value).map(([key, field]): [string, unknown] => {
    const of = Object.hasOwn(fields, key) ? fields[key] : additionalProperties;
    return [key, isObject(of) ? completed(of, field, below(place, key)) : field];
  });
  return Object.fromEntries([...known, ...absentFields(schema, value, place)]);
}

/** The fields that are absent from an object, and have a default, or are required if there is a place. */
function absentFields(
  { properties, required }: StructuralSchema,
  value: Readonly<Record<string, unknown>>,
  place: Place | undefined,
): readonly (readonly [string, unknown])[] {
  const needed = new Set(Array.isArray(required) ? required : []);
  return Object.entries(isObject(properties) ? properties : {}).flatMap(([key, field]) => {
    if (Object.hasOwn(value, key) || !isObject(field)) return [];
    const at = below(place, key);
    if (field.default !== undefined) return [[key, completed(field, field.default, at)] as const];
    return needed.has(key) && at !== undefined ? [[key, sample(field, at)] as const] : [];
  });
}

/**
 * Values that a function is likely to treat each in another way. Both lists have the same prime length, so that any step from 1 to 6 visits each
 * entry once.
 */
const TEXTS = ['a', '12', 'Xy-z.0', 'A b', 'true', '1h', 'q/w:8080'] as const;
const NUMBERS = [0, 1, 7, 60, 443, 2000, 1_000_000] as const;

function sample(schema: StructuralSchema, place: Place): unknown {
  const { enum: values, type, items, additionalProperties, 'x-kubernetes-int-or-string': isEither } = schema;
  const index = indexAt(place);
  if (Array.isArray(values) && values.length > 0) return values[index % values.length] as unknown;
  if (isEither === true) return NUMBERS[index];
  switch (type) {
    case 'string':
      return TEXTS[index];
    case 'integer':
    case 'number':
      return numberAt(index, schema);
    case 'boolean':
      return index % 2 === 0;
    case 'array':
      return isObject(items)
        ? Array.from({ length: index % 4 }, (_, i) => sample(items, { ...place, path: `${place.path}.${i}` }))
        : [];
    default: {
      const others =
        isObject(additionalProperties) && index > 0 ? { [`key${index}`]: sample(additionalProperties, place) } : {};
      return { ...others, ...Object.fromEntries(absentFields(schema, {}, place)) };
    }
  }
}

/** From 0 to 6, another one for each variant of a place. Two places take them in different orders, as a rule. */
function indexAt({ variant, path }: Place): number {
  const count = TEXTS.length;
  let hash = 0;
  for (let i = 0; i < path.length; i += 1) hash = (hash * 31 + path.charCodeAt(i)) % 9973;
  return (variant * (1 + (hash % (count - 1))) + Math.floor(hash / count)) % count;
}

/** One of the numbers, or one within the bounds where it is not: another one for each index, if there are so many. */
function numberAt(index: number, { type, minimum, maximum, multipleOf }: StructuralSchema): number {
  const number = NUMBERS[index] ?? 0;
  const [low, high] = [bound(minimum, -Infinity), bound(maximum, Infinity)];
  const step = typeof multipleOf === 'number' ? multipleOf : 1;
  if (number >= low && number <= high && number % step === 0) return number;
  const first = Number.isFinite(low)
    ? Math.ceil(low / step) * step
    : Math.floor(Math.min(high, 0) / step) * step - 6 * step;
  const count = Math.max(1, Math.floor((high - first) / step) + 1);
  // Between two whole numbers.
  if (type === 'number' && count === 1 && high > low) return low + ((high - low) * index) / NUMBERS.length;
  return first + step * (index % count);
}

function bound(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
