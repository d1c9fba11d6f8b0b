import type { Problem } from '../core/errors';
import { nameProblem } from '../core/names';
import { verbs } from './policy-rule';
import type { PolicyRule } from './policy-rule';

/** Rules by the namespace in which they hold. */
export type NamespacedRules = Readonly<Record<string, readonly PolicyRule[]>>;

/** What is wrong with rules that somebody wrote: they may name resources, never "*". */
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
