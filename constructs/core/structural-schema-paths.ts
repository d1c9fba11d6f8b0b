import type { CelRule } from './cel';
import type { Problem } from './errors';
import { isObject } from './is-object';
import type { PrinterColumn, ScaleSubresource } from './kubectl-columns';
import { nodeProblems } from './structural-schema-cel';
import type { Schema } from './structural-schema-walk';

/** What of a kind's definition points into its schema. */
export interface SchemaPointers {
  readonly columns?: readonly PrinterColumn[];
  readonly scale?: ScaleSubresource;
  readonly rules?: readonly CelRule[];
}

/** Paths into a schema that lead nowhere, and rules on the object as a whole that the server would refuse. */
export function pointerProblems(pointers: SchemaPointers, spec: Schema, status: Schema): Problem[] {
  const root = { type: 'object', properties: { metadata: METADATA, spec, status: { type: 'object', ...status } } };
  const problems: Problem[] = [];
  pointers.columns?.forEach(({ name, jsonPath }, i) => {
    if (leadsSomewhere(root, jsonPath)) return;
    const path = `columns[${i}].jsonPath`;
    problems.push({ path, message: `${jsonPath} of the column ${name} is no field; write a path such as .spec.image` });
  });
  problems.push(...scaleProblems(root, pointers.scale));
  const node = { ...root, 'x-kubernetes-validations': pointers.rules ?? [] };
  for (const { path, message } of nodeProblems({ node, path: '', above: [] })) {
    problems.push({ path: path === '' ? 'rules' : path.slice(1), message });
  }
  return problems;
}

/** What a path from the root can reach besides spec and status. The server bounds names by itself. */
const METADATA: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 253 },
    generateName: { type: 'string', maxLength: 253 },
    namespace: { type: 'string', maxLength: 63 },
    creationTimestamp: { type: 'string', format: 'date-time' },
    labels: { type: 'object', additionalProperties: { type: 'string' }, maxProperties: 1000 },
    annotations: { type: 'object', additionalProperties: { type: 'string' }, maxProperties: 1000 },
  },
};

/** Fields that every status has once the kind is defined. */
const COMMON_STATUS = /^[.]status[.](conditions|observedGeneration)\b/;

function leadsSomewhere(root: Schema, jsonPath: string): boolean {
  if (COMMON_STATUS.test(jsonPath)) return true;
  // Filters and indexes are left to the server.
  if (/[[*@?]/.test(jsonPath)) return jsonPath.startsWith('.');
  return nodeAt(root, jsonPath) !== undefined;
}

function scaleProblems(root: Schema, scale: ScaleSubresource | undefined): Problem[] {
  if (scale === undefined) return [];
  const wanted = [
    ['specReplicasPath', scale.specReplicasPath, '.spec.', 'integer'],
    ['statusReplicasPath', scale.statusReplicasPath, '.status.', 'integer'],
    ['labelSelectorPath', scale.labelSelectorPath, '.', 'string'],
  ] as const;
  return wanted.flatMap(([key, path, prefix, type]) => {
    if (path === undefined) return [];
    const found = nodeAt(root, path)?.type;
    if (path.startsWith(prefix) && (found === undefined || found === type)) return [];
    return [{ path: `scale.${key}`, message: `${path} must lead to a field of type ${type} below ${prefix}` }];
  });
}

function nodeAt(root: Schema, jsonPath: string): Schema | undefined {
  if (!jsonPath.startsWith('.')) return undefined;
  let node: Schema | undefined = root;
  for (const key of jsonPath.slice(1).split('.')) {
    const { properties, additionalProperties } = node;
    const next: unknown =
      isObject(properties) && Object.hasOwn(properties, key) ? properties[key] : additionalProperties;
    if (!isObject(next)) return undefined;
    node = next;
  }
  return node;
}
