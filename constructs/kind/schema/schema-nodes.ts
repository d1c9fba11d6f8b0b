import type { Problem } from '../../kube/errors';
import { isObject } from '../../kube/kube-object';
import { patternProblem, unescapeSlashes } from './re2';

/** A node of a structural schema, or of one under construction. */
export type SchemaNode = Readonly<Record<string, unknown>>;

/** A node of a schema, with its path and the nodes around it. */
export interface VisitedNode {
  readonly node: SchemaNode;
  readonly path: string;
  /** The nodes around this one, the root first. */
  readonly above: readonly VisitedNode[];
}

/** Calls `visit` for a node and every node below it, outer ones first. */
export function walkSchema(
  node: SchemaNode,
  path: string,
  visit: (visited: VisitedNode) => void,
  above: readonly VisitedNode[] = [],
): void {
  const visited = { node, path, above };
  visit(visited);
  const around = [...above, visited];
  for (const [key, child] of childNodes(node)) walkSchema(child, `${path}${key}`, visit, around);
}

/** The nodes directly below a node, with the end of their path: `.field`, `[]` for items, `.*` for the values of a map. */
export function childNodes(node: SchemaNode): readonly (readonly [string, SchemaNode])[] {
  const found: (readonly [string, SchemaNode])[] = [];
  if (isObject(node.items)) found.push(['[]', node.items]);
  if (isObject(node.additionalProperties)) found.push(['.*', node.additionalProperties]);
  if (isObject(node.properties)) {
    for (const [key, child] of Object.entries(node.properties)) if (isObject(child)) found.push([`.${key}`, child]);
  }
  return found;
}

/** A node of a schema under construction. */
export type MutableSchemaNode = Record<string, unknown>;

/** Converts a node of zod's JSON Schema, and all below it, to a structural one. */
export function toStructuralNode(json: MutableSchemaNode, path: string, problems: Problem[]): MutableSchemaNode {
  const report = (message: string): void => void problems.push({ path, message });
  for (const keyword of Object.keys(json)) {
    if (ANNOTATION_KEYWORDS.has(keyword) || (KEYWORDS as readonly string[]).includes(keyword)) continue;
    report(`"${keyword}" is no keyword of a structural schema; say it with a CEL rule or leave it out`);
  }
  const typedJson = isIntegerEnum(json) ? { ...json, type: 'integer' } : json;
  const node = json['x-kubernetes-int-or-string'] === true ? toIntOrString(json) : hoistJunctorType(typedJson, report);
  checkType(node, report);
  if (node.nullable === true && node.enum !== undefined) {
    report('the server admits no null where values are listed; make the field optional, or add a value such as "none"');
  }
  const typed = node.type === 'integer' ? normalizeIntegerBounds(node) : dropUnlimitedBounds(node);
  checkStrings(typed, report);
  checkSizes(typed, report);
  return sortKeywords({ ...typed, ...structuralChildren(typed, path, problems) });
}

/** Keywords of a structural schema, in the order in which they are written. Source: `apiextensions.k8s.io/v1` JSONSchemaProps. */
const KEYWORDS = [
  'title',
  'description',
  'type',
  'format',
  'nullable',
  'enum',
  'default',
  'example',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'exclusiveMinimum',
  'maximum',
  'exclusiveMaximum',
  'multipleOf',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'allOf',
  'anyOf',
  'oneOf',
  'items',
  'required',
  'properties',
  'additionalProperties',
  'x-kubernetes-int-or-string',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
] as const;

/** Annotations in JSON Schema: they constrain nothing, and are left out. */
const ANNOTATION_KEYWORDS = new Set([
  '$schema',
  '$comment',
  'readOnly',
  'writeOnly',
  'examples',
  'deprecated',
  'contentEncoding',
  'contentMediaType',
]);

/** Formats that the API server checks as zod does. Source: `k8s.io/kube-openapi/pkg/validation/strfmt`. */
const FORMATS = new Set([
  'email',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
  'date',
  'date-time',
  'int32',
  'int64',
  'float',
  'double',
]);

/** The types of values that are no lists and no objects. */
export const SCALARS: ReadonlySet<unknown> = new Set(['string', 'integer', 'number', 'boolean']);

/**
 * Keywords that are allowed inside `allOf` and `anyOf`: constraints on values, no types and no annotations.
 */
const BRANCH_KEYWORDS = new Set<string>(KEYWORDS.slice(KEYWORDS.indexOf('pattern'), KEYWORDS.indexOf('minItems'))).add(
  'enum',
);

/** Whether all literals are integers: zod gives them the type `number`. */
function isIntegerEnum({ type, enum: values }: MutableSchemaNode): boolean {
  return type === 'number' && Array.isArray(values) && values.every((value) => Number.isSafeInteger(value));
}

/** `anyOf` of an integer and a string, with the constraints of both outside, as Kubernetes' own CRDs have it. */
function toIntOrString(json: MutableSchemaNode): MutableSchemaNode {
  const { anyOf, ...rest } = json;
  const branches = Array.isArray(anyOf) ? (anyOf as MutableSchemaNode[]) : [];
  const outside: MutableSchemaNode = {};
  for (const branch of branches) {
    const bounded = branch.type === 'integer' ? normalizeIntegerBounds(branch) : branch;
    // A format would apply to integers only; their bounds are kept.
    Object.assign(outside, without(bounded, ['type', 'format']));
  }
  return { ...outside, ...rest, anyOf: [{ type: 'integer' }, { type: 'string' }] };
}

/** Moves the type out of junctors whose branches are scalars of one type; reports all others. */
function hoistJunctorType(json: MutableSchemaNode, report: (message: string) => void): MutableSchemaNode {
  let node = json;
  for (const junctor of ['allOf', 'anyOf', 'oneOf'] as const) {
    const branches = json[junctor];
    if (!Array.isArray(branches)) continue;
    const types = new Set(
      [...(branches as MutableSchemaNode[]).map(({ type }) => type), json.type].filter((t) => t !== undefined),
    );
    const [type] = types;
    if (types.size !== 1 || typeof type !== 'string' || !SCALARS.has(type)) {
      report(
        `"${junctor}" of ${[...types].map(String).join(' and ')} is not structural: a field has one type; ` +
          'use one object with optional fields and a CEL rule, intOrString(), or .nullable()',
      );
      continue;
    }
    node = {
      ...node,
      type,
      [junctor]: (branches as MutableSchemaNode[]).map((branch) => branchConstraints(branch, report)),
    };
  }
  return node;
}

function branchConstraints(branch: MutableSchemaNode, report: (message: string) => void): MutableSchemaNode {
  const bounded = branch.type === 'integer' ? normalizeIntegerBounds(branch) : branch;
  const rest = without(bounded, ['type', 'format', 'description']);
  for (const keyword of Object.keys(rest)) {
    if (!BRANCH_KEYWORDS.has(keyword))
      report(`"${keyword}" cannot stand in a branch of a union; move it to the union itself`);
  }
  checkStrings(rest, report);
  return sortKeywords(rest);
}

function checkType(node: MutableSchemaNode, report: (message: string) => void): void {
  if (typeof node.type === 'string' || node['x-kubernetes-int-or-string'] === true) return;
  if (node['x-kubernetes-preserve-unknown-fields'] === true) return;
  // hoistJunctorType() reports a union of several types.
  if (node.anyOf !== undefined || node.oneOf !== undefined || node.allOf !== undefined) return;
  report('it has no type; every field of a structural schema has exactly one');
}

const INT32_MIN = -2147483648;
const INT32_MAX = 2147483647;

type Keywords = Readonly<Record<string, unknown>>;

/**
 * An integer's bounds as a CRD has them: inclusive, and with the format that they fit in. The bounds of a
 * safe integer in JavaScript are kept: without them the API server would accept what zod rejects, since a
 * double cannot represent it exactly (RFC 8259, section 6).
 */
function normalizeIntegerBounds(node: Keywords): Record<string, unknown> {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, ...rest } = node;
  const least = toInclusiveBound(minimum, exclusiveMinimum === true, Math.floor, 1);
  const most = toInclusiveBound(maximum, exclusiveMaximum === true, Math.ceil, -1);
  const fits = least !== undefined && most !== undefined && least >= INT32_MIN && most <= INT32_MAX;
  return {
    ...rest,
    format: fits ? 'int32' : 'int64',
    ...(least === undefined ? {} : { minimum: least }),
    ...(most === undefined ? {} : { maximum: most }),
  };
}

/** A bound made inclusive: above 3 is at least 4, above 3.5 is at least 4, at least 3.5 is at least 4. */
function toInclusiveBound(
  bound: unknown,
  exclusive: boolean,
  towards: (value: number) => number,
  step: number,
): number | undefined {
  if (typeof bound !== 'number') return undefined;
  if (exclusive) return towards(bound) + step;
  return Number.isInteger(bound) ? bound : towards(bound) + step;
}

/** The server cannot read other sizes. */
function checkSizes(node: Keywords, report: (message: string) => void): void {
  for (const keyword of ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties']) {
    const size = node[keyword];
    if (size !== undefined && !Number.isSafeInteger(size))
      report(`${keyword} ${JSON.stringify(size)} must be an integer`);
  }
}

function dropUnlimitedBounds(node: MutableSchemaNode): MutableSchemaNode {
  const result = { ...node };
  if (result.minimum === -Number.MAX_VALUE) delete result.minimum;
  if (result.maximum === Number.MAX_VALUE) delete result.maximum;
  return result;
}

function checkStrings(node: MutableSchemaNode, report: (message: string) => void): void {
  if (typeof node.pattern === 'string') {
    node.pattern = unescapeSlashes(node.pattern);
    const problem = patternProblem(node.pattern as string);
    if (problem !== undefined) report(`the pattern ${String(node.pattern)}: ${problem}`);
  }
  if (typeof node.format === 'string' && !FORMATS.has(node.format)) {
    // Where zod also writes a pattern, it checks the same as the format.
    if (node.pattern === undefined && node.allOf === undefined) {
      report(`the format "${node.format}" is not checked by Kubernetes; use a pattern`);
    }
    delete node.format;
  }
}

function without(node: MutableSchemaNode, keywords: readonly string[]): MutableSchemaNode {
  return Object.fromEntries(Object.entries(node).filter(([keyword]) => !keywords.includes(keyword)));
}

function sortKeywords(node: MutableSchemaNode): MutableSchemaNode {
  return Object.fromEntries(
    KEYWORDS.filter((keyword) => node[keyword] !== undefined).map((keyword) => [keyword, node[keyword]]),
  );
}

function structuralChildren(node: MutableSchemaNode, path: string, problems: Problem[]): MutableSchemaNode {
  const result: MutableSchemaNode = {};
  if (isObject(node.items)) result.items = toStructuralNode(node.items, `${path}[]`, problems);
  if (isObject(node.properties)) {
    const fields = Object.entries(node.properties as Record<string, MutableSchemaNode>);
    for (const [key, field] of fields) {
      if (typeof field.description === 'string' && field.description.trim() !== '') continue;
      problems.push({ path: `${path}.${key}`, message: 'it has no description; add .describe("...")' });
    }
    result.properties =
      fields.length === 0
        ? undefined
        : Object.fromEntries(fields.map(([key, field]) => [key, toStructuralNode(field, `${path}.${key}`, problems)]));
  }
  // zod marks a loose object by an empty schema; whether it may be loose is checked on the zod side.
  const extra = node.additionalProperties;
  const isMap = isObject(extra) && Object.keys(extra).length > 0;
  result.additionalProperties = isMap ? toStructuralNode(extra, `${path}.*`, problems) : undefined;
  return result;
}
