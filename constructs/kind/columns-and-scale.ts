import type { Problem } from '../kube/errors';
import { isObject } from '../kube/kube-object';
import { stripStringLiterals, type CelRule } from './schema/cel';
import { nodeRuleProblems } from './schema/cel-cost';
import type { SchemaNode } from './schema/schema-nodes';

/** A column of `kubectl get`. `Ready` and `Age` are added to every kind's own. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** A JSON path such as `.spec.image`. */
  readonly jsonPath: string;
  readonly description?: string;
  /** 0: always shown. More: only with `-o wide`. @default 0 */
  readonly priority?: number;
}

/** The paths behind the `scale` subresource. */
export interface ScaleSubresource {
  /** An integer field below `.spec.`. */
  readonly specReplicasPath: string;
  /** An integer field below `.status.`. */
  readonly statusReplicasPath: string;
  /** A string field below `.status.` or `.spec.` with the label selector; autoscalers need it. */
  readonly labelSelectorPath?: string;
}

/** The parts of a kind's definition that refer to fields of its schema. */
interface SchemaPaths {
  readonly columns?: readonly PrinterColumn[];
  readonly scale?: ScaleSubresource;
  readonly rules?: readonly CelRule[];
}

/** Paths that name no field of the schema, and rules on the whole object that the server would reject. */
export function schemaPathProblems(pointers: SchemaPaths, spec: SchemaNode, status: SchemaNode): Problem[] {
  const root = {
    type: 'object',
    properties: { metadata: OBJECT_META_SCHEMA, spec, status: { type: 'object', ...status } },
  };
  const problems: Problem[] = [];
  pointers.columns?.forEach(({ name, jsonPath }, i) => {
    if (pathExists(root, jsonPath)) return;
    const path = `columns[${i}].jsonPath`;
    problems.push({ path, message: `${jsonPath} of the column ${name} is no field; write a path such as .spec.image` });
  });
  problems.push(...scaleProblems(root, pointers.scale));
  const { rules = [] } = pointers;
  const seen = { ...root, properties: { ...root.properties, metadata: CEL_METADATA_SCHEMA } };
  const node = { ...seen, 'x-kubernetes-validations': rules };
  for (const { path, message } of nodeRuleProblems({ node, path: '', above: [] })) {
    problems.push({ path: path === '' ? 'rules' : path.slice(1), message });
  }
  problems.push(...rules.flatMap(ruleMetadataProblems));
  return problems;
}

/**
 * The only metadata that rules can read. The server itself limits the length of names. Source: KEP-2876,
 * "Metadata".
 */
const NAME_FIELDS: Readonly<Record<string, SchemaNode>> = {
  name: { type: 'string', maxLength: 253 },
  generateName: { type: 'string', maxLength: 253 },
};
const CEL_METADATA_SCHEMA: SchemaNode = { type: 'object', properties: NAME_FIELDS };

/** The metadata that a path can name. Source: ObjectMeta of `meta/v1`, without its lists of objects. */
const OBJECT_META_SCHEMA: SchemaNode = {
  type: 'object',
  properties: {
    ...NAME_FIELDS,
    namespace: { type: 'string' },
    uid: { type: 'string' },
    resourceVersion: { type: 'string' },
    generation: { type: 'integer', format: 'int64' },
    creationTimestamp: { type: 'string', format: 'date-time' },
    deletionTimestamp: { type: 'string', format: 'date-time' },
    deletionGracePeriodSeconds: { type: 'integer', format: 'int64' },
    finalizers: { type: 'array', items: { type: 'string' } },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    annotations: { type: 'object', additionalProperties: { type: 'string' } },
  },
};

/** Status fields that every kind has without defining them. */
const COMMON_STATUS = /^[.]status[.](conditions|observedGeneration)\b/;

function pathExists(root: SchemaNode, jsonPath: string): boolean {
  if (COMMON_STATUS.test(jsonPath)) return true;
  // Filters and indexes are left to the server.
  if (/[[*@?]/.test(jsonPath)) return jsonPath.startsWith('.');
  return nodeAt(root, jsonPath) !== undefined;
}

function nodeAt(root: SchemaNode, jsonPath: string): SchemaNode | undefined {
  if (!jsonPath.startsWith('.')) return undefined;
  let node: SchemaNode | undefined = root;
  for (const key of jsonPath.slice(1).split('.')) {
    const { properties, additionalProperties } = node;
    const next: unknown =
      isObject(properties) && Object.hasOwn(properties, key) ? properties[key] : additionalProperties;
    if (!isObject(next)) return undefined;
    node = next;
  }
  return node;
}

/** The server checks only the start of such a path. One that names no field would silently scale nothing. */
function scaleProblems(root: SchemaNode, scale: ScaleSubresource | undefined): Problem[] {
  if (scale === undefined) return [];
  const wanted: readonly (readonly [keyof ScaleSubresource, prefixes: readonly string[], type: string])[] = [
    ['specReplicasPath', ['.spec.'], 'integer'],
    ['statusReplicasPath', ['.status.'], 'integer'],
    ['labelSelectorPath', ['.spec.', '.status.'], 'string'],
  ];
  return wanted.flatMap(([key, prefixes, type]) => {
    const path = scale[key];
    if (path === undefined) return [];
    if (prefixes.some((prefix) => path.startsWith(prefix)) && nodeAt(root, path)?.type === type) return [];
    const message = `${path} must lead to a field of type ${type} below ${prefixes.join(' or ')}`;
    return [{ path: `scale.${key}`, message }];
  });
}

/** Fields of metadata that a rule on the whole object reads although the server hides them from rules. */
function ruleMetadataProblems({ rule, messageExpression = '' }: CelRule): Problem[] {
  return [rule, messageExpression].flatMap((expression) => {
    const read = stripStringLiterals(expression).matchAll(/(?<![.\w])(?:self|oldSelf)[.]metadata[.]([A-Za-z_]\w*)/g);
    const hidden = new Set([...read].flatMap(([, field = '']) => (Object.hasOwn(NAME_FIELDS, field) ? [] : [field])));
    return [...hidden].map((field) => ({
      path: 'rules',
      message: `${expression} reads metadata.${field}, and of metadata the server shows rules only name and generateName; have the rule read a field of the spec instead`,
    }));
  });
}
