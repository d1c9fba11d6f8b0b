import { z } from 'zod';
import type { Problem } from './errors';
import { celProblems } from './structural-schema-cel';
import { defaultProblems } from './structural-schema-defaults';
import { listProblems } from './structural-schema-lists';
import { structuralNode } from './structural-schema-nodes';
import type { Node } from './structural-schema-nodes';
import { zodProblems } from './structural-schema-zod';

/** A node of a structural schema (`apiextensions.k8s.io/v1` JSONSchemaProps). */
export interface StructuralSchema {
  readonly [keyword: string]: unknown;
}

/**
 * Turns a zod schema (its input side) into a structural schema; adds what Kubernetes cannot express to `problems`.
 *
 * Guarantees: every node has one type, or is an int-or-string, or preserves unknown fields; no `$ref`, no `additionalProperties: false`;
 * patterns are RE2; what CEL rules reach is bounded. The result is deeply frozen, and its order is that of the fields in zod.
 * Source: KEP-95 (structural schemas) and the validation of `apiextensions.k8s.io/v1`.
 */
export function structuralSchema(schema: z.ZodType, path: string, problems: Problem[]): StructuralSchema {
  const fromZod = zodProblems(schema, path);
  problems.push(...fromZod);
  const found: Problem[] = [];
  const node = convert(schema, path, found);
  if (node !== undefined) {
    found.push(...listProblems(node, path), ...celProblems(node, path), ...defaultProblems(node, path));
  }
  // What follows from a problem that is named already is not worth a line.
  const covered = (at: string): boolean =>
    fromZod.some((known) => at === known.path || isBelow(at, known.path) || (node === undefined && at === path));
  problems.push(...found.filter(({ path: at }) => !covered(at)));
  return deepFreeze(node ?? { type: 'object' });
}

/** The metadata of zod's schemas without their ids, which would become `$ref`. */
class MetadataWithoutIds extends z.core.$ZodRegistry<z.core.GlobalMeta> {
  override get<S extends z.core.$ZodType>(schema: S): z.core.$replace<z.core.GlobalMeta, S> | undefined {
    const meta = z.globalRegistry.get(schema);
    return meta === undefined ? undefined : { ...meta, id: undefined };
  }
}

const withoutIds = new MetadataWithoutIds();

function convert(schema: z.ZodType, path: string, problems: Problem[]): Node | undefined {
  try {
    const json = z.toJSONSchema(schema, {
      io: 'input',
      target: 'openapi-3.0',
      unrepresentable: 'any',
      cycles: 'throw',
      reused: 'inline',
      metadata: withoutIds,
    });
    return structuralNode(plain(json), path, problems);
  } catch (error) {
    problems.push({
      path,
      message: `zod cannot write it as JSON Schema: ${error instanceof Error ? error.message : String(error)}`,
    });
    return undefined;
  }
}

/** JSON only: zod attaches a hidden property to what it returns, and shares metadata with the registry. */
function plain(json: object): Node {
  return JSON.parse(JSON.stringify(json)) as Node;
}

function isBelow(path: string, parent: string): boolean {
  return path.startsWith(parent) && /^[.[]/.test(path.slice(parent.length));
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}
