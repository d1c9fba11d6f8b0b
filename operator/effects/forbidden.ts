import { OBJECT_VERBS } from '../../constructs/kube/policy-rule';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { ApiError } from '../client/errors';

/**
 * How the API server says that RBAC allows a request on a resource to nobody of that name. Quotas and admission
 * answer 403 in other words. Source: `forbiddenMessage` of k8s.io/apiserver (responsewriters/errors.go).
 */
const DENIED =
  /cannot (?<verb>\S+) resource "(?<resource>[^"]+)" in API group "(?<group>[^"]*)"(?: in the namespace "(?<namespace>[^"]+)"| at the cluster scope)/;

/**
 * Which rule is missing where, when the API server has denied a request that an effect of `object` made: a
 * sentence. Undefined for any other error, and for verbs that no rule of Kindred grants.
 *
 * @param error also the error whose `cause` is the server's answer
 * @param isDerived the request needs no further rule: it follows from the definition of the kind
 */
export function missingRule(
  error: unknown,
  { kind, metadata }: KubeObject,
  { isDerived = false }: { readonly isDerived?: boolean } = {},
): string | undefined {
  const answer = error instanceof Error && error.cause instanceof ApiError ? error.cause : error;
  if (!(answer instanceof ApiError) || answer.code !== 403) return undefined;
  const { verb = '', resource = '', group = '', namespace } = DENIED.exec(answer.message)?.groups ?? {};
  if (!OBJECT_VERBS.some((known) => known === verb)) return undefined;
  if (isDerived) {
    return `The definition of ${kind} asks for this permission, so the operator's roles are older: install the platform again.`;
  }
  const rule = JSON.stringify({ apiGroups: [group], resources: [resource], verbs: [verb] });
  const where =
    namespace === undefined
      ? `"*" in ${OF_OPERATOR}`
      : namespace === metadata.namespace
        ? `\`extraRules\` of the kind ${kind}`
        : `"${namespace}" in ${OF_OPERATOR}`;
  return `To permit it, add ${rule} to ${where}, and install the platform again.`;
}

const OF_OPERATOR = '`extraRules` of the operator (the file that "settings" of package.json names, or its Platform)';

/** A sentence with its full stop: the server's words have none. */
export function withStop(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
