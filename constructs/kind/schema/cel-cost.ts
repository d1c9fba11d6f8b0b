import { ruleReferences, stripStringLiterals, unescapeCelName, type CelRule, type RuleReferences } from './cel';
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
    if (form.length > 0) return form;
    return [
      ...unknownFieldProblems(visited, rule),
      ...enclosingListProblems(visited, rule),
      ...unboundedReadProblems(visited, rule),
    ];
  });
}

function ruleSyntaxProblems({ node, path }: VisitedNode, { rule, message, fieldPath }: CelRule): Problem[] {
  const problems: Problem[] = [];
  if (rule.trim() === '') problems.push({ path, message: 'a CEL rule is empty' });
  const bracket = unbalancedBracket(rule);
  if (bracket !== undefined) {
    problems.push({
      path,
      message: `the rule ${rule} has a "${bracket}" without its other half; the server could not read it`,
    });
  }
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

/** The first bracket of a rule that has no other half. Rules with escapes, raw or long strings are left to the server. */
function unbalancedBracket(rule: string): string | undefined {
  if (/\\|\/\/|'''|"""/.test(rule)) return undefined;
  const closing: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };
  const open: string[] = [];
  for (const [bracket] of stripStringLiterals(rule).matchAll(/[()[\]{}]/g)) {
    if (bracket in closing) open.push(bracket);
    else if (closing[open.pop() ?? ''] !== bracket) return bracket;
  }
  return open.at(-1);
}

/**
 * Paths from `self` and `oldSelf` in a rule that lead to no field: the server would not compile it. Only what is
 * certain: objects whose schema names their fields, and no further than a call, an index or a map.
 */
function unknownFieldProblems({ node, path, above }: VisitedNode, { rule, optionalOldSelf }: CelRule): Problem[] {
  const isRoot = above.length === 0 && path === '';
  const reads = stripStringLiterals(rule).matchAll(/(?<![.\w])(self|oldSelf)((?:[.][A-Za-z_]\w*)+)(\s*\()?/g);
  const problems = new Map<string, Problem>();
  for (const [, root = '', steps = '', call] of reads) {
    // An optional value, which has methods alone.
    if (root === 'oldSelf' && optionalOldSelf === true) continue;
    const names = steps.slice(1).split('.');
    const fields = call === undefined ? names : names.slice(0, -1);
    let at: SchemaNode = node;
    for (const [i, name] of fields.entries()) {
      const isOpen =
        at['x-kubernetes-preserve-unknown-fields'] === true || at['x-kubernetes-embedded-resource'] === true;
      if (isOpen || !isObject(at.properties) || at.additionalProperties !== undefined) break;
      const field = unescapeCelName(name);
      if (isRoot && i === 0 && (field === 'apiVersion' || field === 'kind')) break;
      const next = Object.hasOwn(at.properties, field) ? at.properties[field] : undefined;
      if (!isObject(next)) {
        const has = Object.keys(at.properties).join(', ');
        const message = `the rule ${rule} reads ${[root, ...names.slice(0, i + 1)].join('.')}, which is no field; ${[root, ...names.slice(0, i)].join('.')} has ${has === '' ? 'none' : has}`;
        problems.set(message, { path, message });
        break;
      }
      at = next;
    }
  }
  return [...problems.values()];
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
