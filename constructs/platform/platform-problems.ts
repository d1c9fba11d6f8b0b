import type { Problem } from '../core/errors';
import { nameProblem } from '../core/names';
import { guardrailProblems } from '../guardrails';
import { namespaceListProblems, operatorProblems } from '../operator';
import { extraRulesProblems } from '../rbac';
import { conversionProblems } from './platform-conversion';
import { DEFAULT_NAMESPACE, guardedNamespace, objectNameOf } from './platform-props';
import type { PlatformOperator, PlatformProps } from './platform-props';
import { STATE_NAMESPACE_OPTION } from './provisioner';

/** All that is wrong with the props of a platform, in the order in which they are written. */
export function platformProblems(props: PlatformProps): readonly Problem[] {
  const { namespace = DEFAULT_NAMESPACE, operators } = props;
  const name = nameProblem(namespace, { format: 'dns-label' });
  return [
    ...(name === undefined ? [] : [{ path: 'namespace', message: name }]),
    ...(operators.length > 0
      ? []
      : [{ path: 'operators', message: 'it is empty: a platform needs an operator to run its kinds' }]),
    ...operators.flatMap((operator, i) => oneOperatorProblems(operator, namespace, `operators[${i}]`)),
    ...claimProblems(operators),
    ...conversionProblems(operators, props.conversion),
    ...guardedProblems(props),
    ...namespaceListProblems('watchNamespaces', props.watchNamespaces),
  ];
}

function oneOperatorProblems(operator: PlatformOperator, namespace: string, path: string): readonly Problem[] {
  // Checked here under its own name, and below under a stand-in: the name of its objects is not what was written.
  const name = nameProblem(operator.name, { format: 'dns-label', maxLength: 42 });
  const settings = operatorProblems({ ...operator, name: 'kindred', namespace: DEFAULT_NAMESPACE });
  return [
    ...(name === undefined ? [] : [{ path: `${path}.name`, message: name }]),
    ...settings.map((problem) => ({ ...problem, path: `${path}.${problem.path}` })),
    ...extraRulesProblems(`${path}.extraRules`, operator.extraRules),
    ...stateProblems(operator, namespace, `${path}.args`),
  ];
}

/** State with keys belongs into the platform's own namespace, which is guarded, and stays where state is kept in it. */
function stateProblems({ args = [] }: PlatformOperator, namespace: string, path: string): readonly Problem[] {
  // Of an option that stands twice, the operator takes the last.
  const last = args.filter((arg) => arg.startsWith(STATE_NAMESPACE_OPTION)).at(-1);
  if (last === undefined || last === `${STATE_NAMESPACE_OPTION}${namespace}`) return [];
  const elsewhere = last.slice(STATE_NAMESPACE_OPTION.length);
  const message =
    `it keeps its state, with keys to machines, in "${elsewhere}", and the platform's namespace is "${namespace}": ` +
    `write provisioner({ namespace: '${namespace}', ... }), or give the platform the namespace "${elsewhere}"`;
  return [{ path, message }];
}

/** What two operators must not have in common: their name, their Lease, a kind. */
function claimProblems(operators: readonly PlatformOperator[]): readonly Problem[] {
  const problems: Problem[] = [];
  const claim = (claims: Map<string, number>, what: string, path: string, i: number, why: string): void => {
    const first = claims.get(what);
    if (first === undefined) claims.set(what, i);
    else if (first !== i) {
      problems.push({
        path: `operators[${i}].${path}`,
        message: `${what} belongs to operators[${first}] ("${operators[first]?.name ?? ''}") already; ${why}`,
      });
    }
  };
  const [names, leases, kinds] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  operators.forEach((operator, i) => {
    const lease = operator.leaseName ?? objectNameOf(operator);
    const taken = names.has(operator.name);
    claim(names, operator.name, 'name', i, 'give each operator a name of its own');
    if (!taken) claim(leases, lease, 'leaseName', i, 'of two operators with one Lease, only one would ever work');
    for (const crdName of new Set(operator.kinds.map((kind) => kind.crdName))) {
      claim(kinds, crdName, 'kinds', i, 'two operators would fight over its objects: name it once');
    }
  });
  return problems;
}

function guardedProblems(props: PlatformProps): readonly Problem[] {
  const { namespace = DEFAULT_NAMESPACE, createNamespace = true } = props;
  const guarded = (props.guardedNamespaces ?? []).map(guardedNamespace);
  return guarded.flatMap((entry, i) => {
    const path = `guardedNamespaces[${i}]`;
    const problems: Problem[] = [];
    const name = nameProblem(entry.name, { format: 'dns-label' });
    if (name !== undefined) problems.push({ path, message: name });
    if (guarded.findIndex((other) => other.name === entry.name) !== i) {
      problems.push({ path, message: `"${entry.name}" stands twice; its guardrails are one set` });
    }
    if (entry.create === true && createNamespace && entry.name === namespace) {
      problems.push({ path, message: `"${entry.name}" is created as the operators' namespace; leave \`create\` out` });
    }
    return [...problems, ...guardrailProblems(entry).map((p) => ({ ...p, path: `${path}.${p.path}` }))];
  });
}
