import type { k8s } from 'cdk8s-plus-27';
import type { Problem } from '../kube/errors';
import { nameProblem } from '../kube/names';

/** A rule of a Role or ClusterRole on resources. Source: `rbac.authorization.k8s.io/v1`, PolicyRule. */
export interface PolicyRule {
  /** API groups; the empty string is the core group. */
  readonly apiGroups: readonly string[];
  /** Plurals, or `<plural>/<subresource>`. */
  readonly resources: readonly string[];
  readonly verbs: readonly Verb[];
  /** The only objects that the rule applies to. @default every object */
  readonly resourceNames?: readonly string[];
}

/** The verbs that Kindred grants, in the order in which rules list them. `*` is not among them. */
const verbs = [
  'get',
  'list',
  'watch',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
] as const satisfies readonly string[];

/** A verb of RBAC on a resource. */
export type Verb = (typeof verbs)[number];

/** Rules by the namespace in which they apply. */
export type NamespacedRules = Readonly<Record<string, readonly PolicyRule[]>>;

/** Verbs on one resource: what rules are merged from. */
export interface Grant {
  /** The API group; the empty string is the core group. */
  readonly group: string;
  /** The plural, or `<plural>/<subresource>`. */
  readonly resource: string;
  readonly verbs: readonly Verb[];
}

/**
 * The fewest rules that grant the same: verbs are united by resource, resources of one group with the same
 * verbs share a rule. Sorted by group, then by first resource, so that the same grants in another order give
 * the same bytes.
 */
export function mergeGrants(grants: readonly Grant[]): readonly PolicyRule[] {
  const verbsOf = new Map<string, { readonly grant: Grant; readonly verbs: Set<Verb> }>();
  for (const grant of grants) {
    const key = `${grant.group}/${grant.resource}`;
    const entry = verbsOf.get(key) ?? { grant, verbs: new Set<Verb>() };
    for (const verb of grant.verbs) entry.verbs.add(verb);
    verbsOf.set(key, entry);
  }
  const rules = new Map<string, { readonly group: string; readonly resources: string[]; readonly verbs: Verb[] }>();
  for (const { grant, verbs: granted } of verbsOf.values()) {
    const ordered = verbs.filter((verb) => granted.has(verb));
    const key = `${grant.group}:${ordered.join(',')}`;
    const rule = rules.get(key) ?? { group: grant.group, resources: [], verbs: ordered };
    rule.resources.push(grant.resource);
    rules.set(key, rule);
  }
  return [...rules.values()]
    .map((rule) => ({ apiGroups: [rule.group], resources: rule.resources.sort(compare), verbs: rule.verbs }))
    .sort((a, b) => compare(sortKey(a), sortKey(b)));
}

function sortKey(rule: PolicyRule): string {
  return `${rule.apiGroups.join()} ${rule.resources.join()}`;
}

/** By code unit, not by locale: the same order on every machine. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The rules as cdk8s takes them. */
export function toK8sRules(rules: readonly PolicyRule[]): k8s.PolicyRule[] {
  return rules.map(({ apiGroups, resources, verbs: granted, resourceNames }) => ({
    apiGroups: [...apiGroups],
    resources: [...resources],
    verbs: [...granted],
    ...(resourceNames === undefined ? {} : { resourceNames: [...resourceNames] }),
  }));
}

/** What is wrong with extra rules: they must name API groups and resources, never `*`. */
export function extraRulesProblems(path: string, extra: NamespacedRules | undefined): readonly Problem[] {
  return Object.entries(extra ?? {}).flatMap(([namespace, rules]) => {
    const at = `${path}.${namespace}`;
    const name = nameProblem(namespace, { format: 'dns-label' });
    return [
      ...(name === undefined ? [] : [{ path: at, message: name }]),
      ...rules.flatMap((rule, i) => ruleProblems(`${at}[${i}]`, rule)),
    ];
  });
}

function ruleProblems(path: string, rule: PolicyRule): readonly Problem[] {
  const problems: Problem[] = [];
  if ([...rule.apiGroups, ...rule.resources].some((value) => value.includes('*'))) {
    problems.push({ path, message: 'it grants "*": name the API groups and resources' });
  }
  const unknown = rule.verbs.filter((verb) => !verbs.includes(verb));
  if (unknown.length > 0) {
    problems.push({ path, message: `the verb ${unknown.join()} is none of ${verbs.join(', ')}` });
  }
  for (const field of ['apiGroups', 'resources', 'verbs'] as const) {
    if (rule[field].length === 0)
      problems.push({ path: `${path}.${field}`, message: 'it is empty: the rule grants nothing' });
  }
  return problems;
}
