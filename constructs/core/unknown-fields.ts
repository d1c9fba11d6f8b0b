import type { Problem } from './errors';
import { isObject } from './is-object';
import type { StructuralSchema } from './structural-schema';

/** The fields of a value that a schema does not name: those that the server prunes, or refuses under strict validation. */
export function unknownFields(schema: StructuralSchema, value: unknown, path: string): Problem[] {
  if (Array.isArray(value)) {
    const { items } = schema;
    if (!isObject(items)) return [];
    return value.flatMap((item, i) => unknownFields(items, item, `${path}[${i}]`));
  }
  if (!isObject(value)) return [];
  const { properties, additionalProperties } = schema;
  if (isObject(additionalProperties)) {
    return Object.entries(value).flatMap(([key, item]) => unknownFields(additionalProperties, item, `${path}.${key}`));
  }
  const known: Record<string, unknown> = isObject(properties) ? properties : {};
  return Object.entries(value).flatMap(([key, item]) => {
    // The fields of an embedded resource's metadata are known to the server, not to the schema.
    if (schema['x-kubernetes-embedded-resource'] === true && EMBEDDED.has(key)) return [];
    const field = Object.hasOwn(known, key) ? known[key] : undefined;
    if (isObject(field)) return unknownFields(field, item, `${path}.${key}`);
    if (schema['x-kubernetes-preserve-unknown-fields'] === true) return [];
    return [{ path: `${path}.${key}`, message: `is no field of the schema${hint(Object.keys(known))}` }];
  });
}

/** What every embedded resource has, whatever its schema says. */
const EMBEDDED: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

function hint(known: readonly string[]): string {
  return known.length === 0 ? '; it has none' : `; it has ${known.join(', ')}`;
}
