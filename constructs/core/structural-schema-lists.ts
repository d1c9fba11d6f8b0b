import type { Problem } from './errors';
import { walk } from './structural-schema-walk';
import type { Schema } from './structural-schema-walk';

const SCALARS: ReadonlySet<unknown> = new Set(['string', 'integer', 'number', 'boolean']);

/** What is wrong with the list types of a schema. Source: KEP-555 and the validation of `apiextensions.k8s.io/v1`. */
export function listProblems(root: Schema, path: string): Problem[] {
  const problems: Problem[] = [];
  walk(root, path, ({ node, path: at }) => {
    const report = (message: string): void => void problems.push({ path: at, message });
    const type = node['x-kubernetes-list-type'];
    const keys = node['x-kubernetes-list-map-keys'];
    if (type === undefined && keys === undefined) return;
    if (node.type !== 'array') report('a list type can only stand on a list');
    else if (type === 'map') mapProblems(node, keys, report);
    else if (keys !== undefined) report('list map keys need the list type "map"; use listMap()');
    else if (type === 'set') setProblems(node, report);
    else if (type !== 'atomic') report(`"${String(type)}" is no list type; use listMap(), listSet() or atomicList()`);
  });
  return problems;
}

function mapProblems(node: Schema, keys: unknown, report: (message: string) => void): void {
  const names = Array.isArray(keys) ? (keys as string[]) : [];
  const items = (node.items ?? {}) as Schema;
  if (names.length === 0) report('a list map needs at least one key');
  if (new Set(names).size < names.length) report('a list map key stands twice; name each once');
  if (items.type !== 'object') report('the items of a list map must be objects');
  const fields = (items.properties ?? {}) as Readonly<Record<string, Schema>>;
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

function setProblems(node: Schema, report: (message: string) => void): void {
  const items = (node.items ?? {}) as Schema;
  const atomic = items['x-kubernetes-map-type'] === 'atomic' || items['x-kubernetes-list-type'] === 'atomic';
  if (!SCALARS.has(items.type) && !atomic) report('the items of a list set must be scalars; use listMap()');
  if (items.nullable === true) report('the items of a list set must not be nullable');
  if (items.default !== undefined) report('the items of a list set must not have a default');
}
