import { guardrailProblems } from '../../constructs/guardrails';
import type { GuardedNamespace } from '../../constructs/platform';
import { propertyPath } from '../components/bridge/property-path';
import { valueRemedy } from './config-error';
import type { ConfigProblem } from './config-error';
import type { ConfigValues } from './keys';

/** An entry of `guardedNamespaces` as the platform takes it: what was left out is absent, not undefined. */
export function guardedNamespace(entry: ConfigValues['guardedNamespaces'][number]): string | GuardedNamespace {
  return typeof entry === 'string' ? entry : (JSON.parse(JSON.stringify(entry)) as GuardedNamespace);
}

/** The numbers of guarded namespaces that are none. */
export function quantityProblems({ guardedNamespaces }: Pick<ConfigValues, 'guardedNamespaces'>): ConfigProblem[] {
  return guardedNamespaces.flatMap((entry, i) => {
    const guarded = guardedNamespace(entry);
    if (typeof guarded === 'string') return [];
    return guardrailProblems(guarded).map(({ path, message }) => {
      const key = propertyPath(['guardedNamespaces', i, ...stepsOf(path)]);
      return { key, message, remedy: valueRemedy(key) };
    });
  });
}

/** A quota's resources have dots in their names. */
function stepsOf(path: string): readonly string[] {
  const quota = /^quota\.(.*)$/.exec(path);
  return quota === null ? path.split('.') : ['quota', quota[1] ?? ''];
}
