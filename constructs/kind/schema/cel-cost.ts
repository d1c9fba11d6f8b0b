import { ruleReferences, type CelRule, type RuleReferences } from './cel';
import type { Problem } from '../../kube/errors';
import { isObject } from '../../kube/kube-object';
import { childNodes, walkSchema, type SchemaNode, type VisitedNode } from './schema-nodes';

/**
 * The most that one rule may cost, over all values that it is evaluated on. Source: KEP-2876,
 * `StaticEstimatedCostLimit`.
 */
const COST_LIMIT = 10_000_000;

/**
 * Why the API server would reject the CEL rules in a schema.
 *
 * The server assumes the worst of a value without an upper bound, and finds the rule too expensive. So
 * whatever a rule reads needs `maxLength`, `maxItems` or `maxProperties`, and so do the lists and maps around
 * a rule, which multiply its cost. The server's estimate is more precise; this check finds what is certain to
 * fail and names the field.
 */
export function celProblems(root: SchemaNode, path: string): Problem[] {
  const problems = new Map<string, Problem>();
  walkSchema(root, path, (visited) => {
    for (const problem of nodeRuleProblems(visited)) problems.set(`${problem.path}: ${problem.message}`, problem);
  });
  return [...problems.values()];
}

/** {@link celProblems} of the rules of one node alone. */
export function nodeRuleProblems(visited: VisitedNode): Problem[] {
  const rules = (visited.node['x-kubernetes-validations'] ?? []) as readonly CelRule[];
  return rules.flatMap((rule) => {
    const form = ruleSyntaxProblems(visited, rule);
    return form.length > 0 ? form : [...enclosingListProblems(visited, rule), ...unboundedReadProblems(visited, rule)];
  });
}

function ruleSyntaxProblems({ node, path }: VisitedNode, { rule, message, fieldPath }: CelRule): Problem[] {
  const problems: Problem[] = [];
  if (rule.trim() === '') problems.push({ path, message: 'a CEL rule is empty' });
  if (message.trim() === '' || /[\n\r]/.test(message) || message.length > 2048) {
    problems.push({ path, message: `the message of the rule ${rule} must be one line of at most 2048 characters` });
  }
  if (fieldPath !== undefined && !fieldExists(node, fieldPath)) {
    problems.push({
      path,
      message: `the fieldPath "${fieldPath}" of the rule ${rule} names no field; write it as ".field"`,
    });
  }
  return problems;
}

function fieldExists(node: SchemaNode, fieldPath: string): boolean {
  if (!/^([.][A-Za-z_][A-Za-z0-9_-]*|\['[^']+'\])+$/.test(fieldPath)) return false;
  const keys = [...fieldPath.matchAll(/[.]([A-Za-z0-9_-]+)|\['([^']+)'\]/g)].map(
    ([, dotted, quoted]) => dotted ?? quoted,
  );
  let at: unknown = node;
  for (const key of keys) {
    if (!isObject(at)) return false;
    at = isObject(at.properties) ? at.properties[key ?? ''] : at.additionalProperties;
  }
  return isObject(at);
}

/**
 * Problems with the lists and maps around a rule. They multiply its cost, and `oldSelf` needs lists with
 * keys.
 */
function enclosingListProblems({ above, path, node }: VisitedNode, { rule }: CelRule): Problem[] {
  const problems: Problem[] = [];
  let times = 1;
  const line = [...above.map((visited) => visited.node), node];
  above.forEach((outer, i) => {
    const size = collectionSize(outer.node);
    const next = line[i + 1];
    const steps = next === outer.node.items || next === outer.node.additionalProperties;
    if (!steps || size === undefined) return;
    times *= size.max ?? 1;
    if (size.max === undefined) {
      problems.push({
        path: outer.path,
        message: `${size.advice}: a CEL rule stands on ${path}, and would run without limit`,
      });
    }
    if (/\boldSelf\b/.test(rule) && outer.node.type === 'array' && outer.node['x-kubernetes-list-type'] !== 'map') {
      problems.push({
        path,
        message: `${outer.path} has no keys to tell its items before and after apart; use listMap()`,
      });
    }
  });
  if (times > COST_LIMIT) {
    problems.push({
      path,
      message: `the rule ${rule} may run ${times} times, which is too expensive; lower the bounds around it`,
    });
  }
  return problems;
}

function unboundedReadProblems({ node, path }: VisitedNode, { rule }: CelRule): Problem[] {
  const references = ruleReferences(rule);
  return findUnboundedNodes(node, path, references, references.whole).map(({ path: at, advice }) => ({
    path: at,
    message: `${advice}: the rule ${rule} on ${path} reaches it, and would be too expensive without a bound`,
  }));
}

interface UnboundedNode {
  readonly path: string;
  readonly advice: string;
}

/** The nodes without a bound that a rule reads, from `node` down. `whole`: the rule reads all of `node`. */
function findUnboundedNodes(
  node: SchemaNode,
  path: string,
  references: RuleReferences,
  whole: boolean,
): UnboundedNode[] {
  const size = collectionSize(node);
  const own = size !== undefined && size.max === undefined ? [{ path, advice: size.advice }] : [];
  const below = childNodes(node).flatMap(([key, child]) => {
    const isField = key.startsWith('.') && key !== '.*';
    if (isField && !whole && !references.names.has(key.slice(1))) return [];
    const childWhole =
      whole || (isField && references.wholeNames.has(key.slice(1))) || (!isField && references.wholeItems);
    return findUnboundedNodes(child, `${path}${key}`, references, childWhole);
  });
  return [...own, ...below];
}

interface CollectionSize {
  readonly max: number | undefined;
  readonly advice: string;
}

/** How large a value of a node can be; undefined for a type that needs no bound. */
function collectionSize(node: SchemaNode): CollectionSize | undefined {
  const bound = (keyword: string): number | undefined => {
    const value = node[keyword];
    return typeof value === 'number' ? value : undefined;
  };
  if (node.type === 'array') return { max: bound('maxItems'), advice: 'give the list a maximum with .max()' };
  if (node.type === 'string' && node.enum === undefined && !hasBoundedLength(node.format)) {
    return { max: bound('maxLength'), advice: 'give the string a maximum with .max()' };
  }
  if (isObject(node.additionalProperties)) {
    return { max: bound('maxProperties'), advice: 'give the map a maximum with mapOf() or stringMap()' };
  }
  return undefined;
}

/** Whether the server's estimate has its own maximum length for a format. */
function hasBoundedLength(format: unknown): boolean {
  return format === 'date' || format === 'date-time' || format === 'duration';
}
