import type { z } from 'zod';
import { InvalidObjectError, type Problem } from '../kube/errors';
import { callKindFunction } from '../kube/function-error';
import { isObject, type KubeObject } from '../kube/kube-object';
import { nameProblem } from '../kube/names';
import type { AnyKind, KindObject } from './kind';
import { serverOnlyRules } from './schema/cel';
import { unknownFields, type StructuralSchema } from './schema/structural-schema';

/**
 * Checks an object as a user wrote it: type, name, and a spec that fits the schema and has no fields beyond it.
 * CEL rules without a counterpart in TypeScript are left to the API server.
 *
 * @returns the object with its spec's defaults applied
 * @throws InvalidObjectError naming every field that is wrong
 */
export function validateObject<K extends AnyKind>(kind: K, object: KubeObject): KindObject<K> {
  const problems: Problem[] = [];
  if (object.apiVersion !== kind.apiVersion || object.kind !== kind.kind) {
    const actual = `${object.apiVersion} ${object.kind}`;
    problems.push({ path: '', message: `it is ${actual}; ${kind.apiVersion} ${kind.kind} is expected` });
  }
  const name = metadataNameProblem(object, kind);
  if (name !== undefined) problems.push({ path: 'metadata.name', message: name });
  const written = dropNulls(kind.schema.spec, object.spec ?? {});
  problems.push(...unknownFields(kind.schema.spec, written, 'spec'));
  const parsed = specSchema(kind).safeParse(written);
  if (!parsed.success) problems.push(...problemsFromZodError(parsed.error, written));
  else if (object.spec === undefined || object.spec === null) problems.push(...missingSpecProblems(kind));
  if (problems.length > 0) throw new InvalidObjectError(describeObject(object), problems);
  return { ...object, spec: parsed.data } as KindObject<K>;
}

/** The problems for which {@link validateObject} rejects an object; none if it is valid. */
export function objectProblems(kind: AnyKind, object: KubeObject): readonly Problem[] {
  try {
    validateObject(kind, object);
    return [];
  } catch (error) {
    if (error instanceof InvalidObjectError) return error.problems;
    throw error;
  }
}

/**
 * The spec of a live object, with its defaults applied. Fields that the schema does not know are ignored, as
 * the server prunes them; an absent spec counts as an empty one.
 *
 * @throws InvalidObjectError when the spec does not fit the schema, for example because it was written under
 * an older one
 */
export function parseSpec<K extends AnyKind>(kind: K, object: KubeObject): KindObject<K>['spec'] {
  const written = object.spec === undefined ? {} : object.spec;
  const parsed = callKindFunction(describeObject(object), `${kind.kind}.spec`, () =>
    specSchema(kind).safeParse(written),
  );
  if (parsed.success) return parsed.data;
  throw new InvalidObjectError(describeObject(object), problemsFromZodError(parsed.error, written));
}

/** An object in an error message: `HelloApp default/web`. */
export function describeObject(object: KubeObject): string {
  const { namespace, name = '(unnamed)' } = (object.metadata as Partial<KubeObject['metadata']> | undefined) ?? {};
  return `${object.kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}

/** The issues that zod found in a spec, as problems. */
export function problemsFromZodError(error: z.ZodError, value: unknown): Problem[] {
  return error.issues.map(({ code, path, message }) => ({
    path: pathOf(path),
    message: code === 'invalid_type' && valueAt(value, path) === undefined ? 'is required' : message,
  }));
}

function pathOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>((at, key) => (typeof key === 'number' ? `${at}[${key}]` : `${at}.${String(key)}`), 'spec');
}

/** Whether a spec lacks something that is required, and has no other fault. */
export function isIncomplete(parsed: z.ZodSafeParseResult<unknown> | undefined, spec: unknown): boolean {
  if (parsed === undefined || parsed.success) return false;
  return parsed.error.issues.every(({ code, path }) => code !== 'custom' && valueAt(spec, path) === undefined);
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (at, key) =>
      (isObject(at) || Array.isArray(at)) && Object.hasOwn(at, key)
        ? (at as unknown as Record<PropertyKey, unknown>)[key]
        : undefined,
    value,
  );
}

/**
 * What is wrong with the name of an object, which may be absent in what a user wrote, whatever the type says.
 */
function metadataNameProblem(object: KubeObject, kind: AnyKind): string | undefined {
  const name: unknown = (object.metadata as Partial<KubeObject['metadata']> | undefined)?.name;
  return typeof name === 'string' ? nameProblem(name, kind.names ?? { format: 'dns-subdomain' }) : 'is required';
}

/**
 * A value without the nulls that the API server drops before it validates: those of fields and map values
 * that are not `nullable`. Nulls in lists are kept, as the server does.
 * Source: Kubernetes documentation, "Defaulting and Nullable".
 */
function dropNulls(schema: StructuralSchema, value: unknown): unknown {
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

function specSchema(kind: AnyKind): z.ZodType {
  return kind.spec as z.ZodType;
}

/**
 * Why an object needs a spec although none of its fields is required: the server would skip these rules
 * without one, so the CRD requires it.
 */
function missingSpecProblems(kind: AnyKind): Problem[] {
  return serverOnlyRules(specSchema(kind)).map(({ message }) => ({
    path: 'spec',
    message: `is required: the server checks the rule "${message}" only where there is a spec`,
  }));
}
