import { z } from 'zod';
import { errorMessage, type Problem } from '../../kube/errors';
import { isObject } from '../../kube/kube-object';
import { celProblems } from './cel-cost';
import { SCALARS, toStructuralNode, walkSchema, type MutableSchemaNode, type SchemaNode } from './schema-nodes';
import { zodProblems } from './zod-problems';

/** A node of a structural schema (`apiextensions.k8s.io/v1` JSONSchemaProps). */
export interface StructuralSchema {
  readonly [keyword: string]: unknown;
}

/**
 * Converts a zod schema (its input side) to a structural schema; adds what Kubernetes cannot express to
 * `problems`.
 *
 * Guarantees: every node has one type, or is an int-or-string, or preserves unknown fields; no `$ref`, no
 * `additionalProperties: false`; patterns are RE2; what CEL rules read is bounded. The result is deeply
 * frozen, and its order is that of the fields in zod.
 * Source: KEP-95 (structural schemas) and the validation of `apiextensions.k8s.io/v1`.
 */
export function toStructuralSchema(schema: z.ZodType, path: string, problems: Problem[]): StructuralSchema {
  const fromZod = zodProblems(schema, path);
  problems.push(...fromZod);
  const found: Problem[] = [];
  const node = convertSchema(schema, path, found);
  if (node !== undefined) {
    found.push(...listProblems(node, path), ...celProblems(node, path), ...defaultProblems(node, path));
  }
  // Leave out what follows from a problem that is reported already.
  const covered = (at: string): boolean =>
    fromZod.some((known) => at === known.path || isBelow(at, known.path) || (node === undefined && at === path));
  problems.push(...found.filter(({ path: at }) => !covered(at)));
  return deepFreeze(node ?? { type: 'object' });
}

/**
 * The fields of a value that a schema does not name: those that the server prunes, or rejects under strict
 * validation.
 */
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
    // The server knows the metadata of an embedded resource; the schema does not.
    if (schema['x-kubernetes-embedded-resource'] === true && EMBEDDED.has(key)) return [];
    const field = Object.hasOwn(known, key) ? known[key] : undefined;
    if (isObject(field)) return unknownFields(field, item, `${path}.${key}`);
    if (schema['x-kubernetes-preserve-unknown-fields'] === true) return [];
    const message = `is no field of the schema${hint(Object.keys(known))}`;
    return [{ path: `${path}.${key}`, message, remedy: 'remove' }];
  });
}

/** Fields that every embedded resource has, whatever its schema names. */
const EMBEDDED: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

function hint(known: readonly string[]): string {
  return known.length === 0 ? '; it has none' : `; it has ${known.join(', ')}`;
}

function convertSchema(schema: z.ZodType, path: string, problems: Problem[]): MutableSchemaNode | undefined {
  try {
    const json = z.toJSONSchema(schema, {
      io: 'input',
      target: 'openapi-3.0',
      unrepresentable: 'any',
      cycles: 'throw',
      reused: 'inline',
      metadata: withoutIds,
    });
    return toStructuralNode(toPlainJson(json), path, problems);
  } catch (error) {
    problems.push({
      path,
      message: `zod cannot write it as JSON Schema: ${errorMessage(error)}`,
    });
    return undefined;
  }
}

/** The metadata of zod's schemas without their ids, which would become `$ref`. */
class MetadataWithoutIds extends z.core.$ZodRegistry<z.core.GlobalMeta> {
  override get<S extends z.core.$ZodType>(schema: S): z.core.$replace<z.core.GlobalMeta, S> | undefined {
    const meta = z.globalRegistry.get(schema);
    return meta === undefined ? undefined : { ...meta, id: undefined };
  }
}

const withoutIds = new MetadataWithoutIds();

/**
 * A copy as plain JSON: zod attaches a hidden property to its result, and shares metadata with the registry.
 */
function toPlainJson(json: object): MutableSchemaNode {
  return JSON.parse(JSON.stringify(json)) as MutableSchemaNode;
}

/** What is wrong with the list types of a schema. Source: KEP-555 and the validation of `apiextensions.k8s.io/v1`. */
function listProblems(root: SchemaNode, path: string): Problem[] {
  const problems: Problem[] = [];
  walkSchema(root, path, ({ node, path: at }) => {
    const report = (message: string): void => void problems.push({ path: at, message });
    const type = node['x-kubernetes-list-type'];
    const keys = node['x-kubernetes-list-map-keys'];
    if (type === undefined && keys === undefined) return;
    if (node.type !== 'array') report('a list type can only stand on a list');
    else if (type === 'map') listMapProblems(node, keys, report);
    else if (keys !== undefined) report('list map keys need the list type "map"; use listMap()');
    else if (type === 'set') listSetProblems(node, report);
    else if (type !== 'atomic') report(`"${String(type)}" is no list type; use listMap(), listSet() or atomicList()`);
  });
  return problems;
}

function listMapProblems(node: SchemaNode, keys: unknown, report: (message: string) => void): void {
  const names = Array.isArray(keys) ? (keys as string[]) : [];
  const items = (node.items ?? {}) as SchemaNode;
  if (names.length === 0) report('a list map needs at least one key');
  if (new Set(names).size < names.length) report('a list map key stands twice; name each once');
  if (items.type !== 'object') report('the items of a list map must be objects');
  const fields = (items.properties ?? {}) as Readonly<Record<string, SchemaNode>>;
  const required = (items.required ?? []) as readonly string[];
  for (const name of new Set(names)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field === undefined) report(`the list map key "${name}" is no field of the items`);
    else if (!SCALARS.has(field.type)) report(`the list map key "${name}" must be a scalar`);
    else if (field.nullable === true) report(`the list map key "${name}" must not be nullable`);
    else if (!required.includes(name) && field.default === undefined) {
      report(`the list map key "${name}" must be required or have a default`);
    }
  }
}

function listSetProblems(node: SchemaNode, report: (message: string) => void): void {
  const items = (node.items ?? {}) as SchemaNode;
  const atomic = items['x-kubernetes-map-type'] === 'atomic' || items['x-kubernetes-list-type'] === 'atomic';
  if (!SCALARS.has(items.type) && !atomic) report('the items of a list set must be scalars; use listMap()');
  if (items.nullable === true) report('the items of a list set must not be nullable');
  if (items.default !== undefined) report('the items of a list set must not have a default');
}

/**
 * Defaults that the server would reject for fields that it prunes. zod checks whether a default fits its
 * schema.
 */
function defaultProblems(root: SchemaNode, path: string): Problem[] {
  const problems: Problem[] = [];
  walkSchema(root, path, ({ node, path: at }) => {
    if (node.default === undefined) return;
    for (const unknown of unknownFields(node, node.default, '')) {
      problems.push({
        path: at,
        message: `the default has the field "${unknown.path.slice(1)}", which ${unknown.message}`,
      });
    }
  });
  return problems;
}

function isBelow(path: string, parent: string): boolean {
  return path.startsWith(parent) && /^[.[]/.test(path.slice(parent.length));
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}
