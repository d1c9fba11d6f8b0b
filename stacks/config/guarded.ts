import { guardrailProblems } from '../../constructs/guardrails';
import type { GuardedNamespace } from '../../constructs/platform';
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
    return guardrailProblems(guarded).map(({ path, message }) => ({
      key: `guardedNamespaces[${i}].${path}`,
      message,
      remedy: `pulumi config set --path 'kindred:guardedNamespaces[${i}].${path}' 8Gi`,
    }));
  });
}
