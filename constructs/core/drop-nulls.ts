import type { StructuralSchema } from './structural-schema';

/**
 * A value without the nulls that the API server drops before it looks at anything else: those of fields and map values that are not
 * `nullable`. Nulls in lists stay, as they do there.
 * Source: Kubernetes documentation, "Defaulting and Nullable".
 */
export function dropNulls(schema: StructuralSchema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = schema.items as StructuralSchema | undefined;
    return items === undefined ? value : value.map((item) => dropNulls(items, item));
  }
  if (typeof value !== 'object' || value === null) return value;
  const properties = (schema.properties ?? {}) as Readonly<Record<string, StructuralSchema>>;
  const others = schema.additionalProperties as StructuralSchema | undefined;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]): [string, unknown][] => {
      const fieldSchema = Object.hasOwn(properties, name) ? properties[name] : others;
      if (fieldSchema === undefined) return [[name, field]];
      if (field === null) return fieldSchema.nullable === true ? [[name, field]] : [];
      return [[name, dropNulls(fieldSchema, field)]];
    }),
  );
}
