import { isObject } from './is-object';

/** A node of a structural schema, or of one under construction. */
export type Schema = Readonly<Record<string, unknown>>;

/** One step of the way from the root of a schema to a node, the root first. */
export interface Visited {
  readonly node: Schema;
  readonly path: string;
  /** The nodes around this one, the root first. */
  readonly above: readonly Visited[];
}

/** Calls `visit` for a node and every node below it, outer ones first. */
export function walk(
  node: Schema,
  path: string,
  visit: (visited: Visited) => void,
  above: readonly Visited[] = [],
): void {
  const visited = { node, path, above };
  visit(visited);
  const around = [...above, visited];
  for (const [key, child] of children(node)) walk(child, `${path}${key}`, visit, around);
}

/** The nodes directly below a node, with the end of their path: `.field`, `[]` for items, `.*` for the values of a map. */
export function children(node: Schema): readonly (readonly [string, Schema])[] {
  const found: (readonly [string, Schema])[] = [];
  if (isObject(node.items)) found.push(['[]', node.items]);
  if (isObject(node.additionalProperties)) found.push(['.*', node.additionalProperties]);
  if (isObject(node.properties)) {
    for (const [key, child] of Object.entries(node.properties)) if (isObject(child)) found.push([`.${key}`, child]);
  }
  return found;
}
