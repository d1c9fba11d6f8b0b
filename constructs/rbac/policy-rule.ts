import type { k8s } from 'cdk8s-plus-27';
import { childPath, type Problem } from '../kube/errors';
import { nameProblem } from '../kube/names';
import { OBJECT_VERBS, ruleProblems, type ObjectVerb, type PolicyRule } from '../kube/policy-rule';

export type { KindRule, PolicyRule, Verb } from '../kube/policy-rule';

/** The key of the rules that apply in the whole cluster, among {@link NamespacedRules}. No namespace has this name. */
export const WHOLE_CLUSTER = '*';

/** Rules by the namespace in which they apply; `'*'`: in the whole cluster, whatever namespaces are watched. */
export type NamespacedRules = Readonly<Record<string, readonly PolicyRule[]>>;

/** Verbs on one resource: what rules are merged from. */
export interface Grant {
  /** The API group; the empty string is the core group. */
  readonly group: string;
  /** The plural, or `<plural>/<subresource>`. */
  readonly resource: string;
  readonly verbs: readonly ObjectVerb[];
}

/**
 * The fewest rules that grant the same: verbs are united by resource, resources of one group with the same
 * verbs share a rule. Sorted by group, then by first resource, so that the same grants in another order give
 * the same bytes.
 */
export function mergeGrants(grants: readonly Grant[]): readonly PolicyRule[] {
  const verbsOf = new Map<string, { readonly grant: Grant; readonly verbs: Set<ObjectVerb> }>();
  for (const grant of grants) {
    const key = `${grant.group}/${grant.resource}`;
    const entry = verbsOf.get(key) ?? { grant, verbs: new Set<ObjectVerb>() };
    for (const verb of grant.verbs) entry.verbs.add(verb);
    verbsOf.set(key, entry);
  }
  const rules = new Map<
    string,
    { readonly group: string; readonly resources: string[]; readonly verbs: ObjectVerb[] }
  >();
  for (const { grant, verbs: granted } of verbsOf.values()) {
    const ordered = OBJECT_VERBS.filter((verb) => granted.has(verb));
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

/** What is wrong with extra rules, see {@link ruleProblems}. */
export function extraRulesProblems(path: string, extra: NamespacedRules | undefined): readonly Problem[] {
  return Object.entries(extra ?? {}).flatMap(([namespace, rules]) => {
    const at = childPath(path, namespace);
    const name = namespace === WHOLE_CLUSTER ? undefined : nameProblem(namespace, { format: 'dns-label' });
    return [
      ...(name === undefined
        ? []
        : [{ path: at, message: `${name}; or write "${WHOLE_CLUSTER}" for the whole cluster` }]),
      ...rules.flatMap((rule, i) => ruleProblems(`${at}[${i}]`, rule)),
    ];
  });
}
