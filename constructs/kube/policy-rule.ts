import type { Problem } from './errors';
import type { ResourceScope } from './resource-type';

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

/** A rule that a kind needs besides those that follow from its definition. */
export interface KindRule extends PolicyRule {
  /**
   * `Namespaced`: in the namespaces that the operator watches. `Cluster`: in the whole cluster, whatever
   * namespaces it watches. @default the scope of the kind
   */
  readonly scope?: ResourceScope;
}

/** The verbs on objects, in the order in which rules list them. `*` is not among them. */
export const OBJECT_VERBS = [
  'get',
  'list',
  'watch',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
] as const satisfies readonly string[];

/** A verb on objects. */
export type ObjectVerb = (typeof OBJECT_VERBS)[number];

/**
 * A verb of RBAC on a resource. `bind` on a named ClusterRole or Role: bindings to it may be written by an
 * account that does not have its permissions itself.
 * Source: Kubernetes documentation, "Restrictions on role binding creation or update".
 */
export type Verb = ObjectVerb | 'bind';

export const RBAC_GROUP = 'rbac.authorization.k8s.io';
const ROLES: readonly string[] = ['clusterroles', 'roles'];

/** What is wrong with a rule: it must name API groups and resources, never `*`, and for `bind` the roles. */
export function ruleProblems(path: string, rule: PolicyRule): readonly Problem[] {
  const problems: Problem[] = [];
  if ([...rule.apiGroups, ...rule.resources].some((value) => value.includes('*'))) {
    problems.push({ path, message: 'it grants "*": name the API groups and resources' });
  }
  const known: readonly string[] = [...OBJECT_VERBS, 'bind'];
  const unknown = rule.verbs.filter((verb) => !known.includes(verb));
  if (unknown.length > 0) {
    problems.push({ path, message: `the verb ${unknown.join()} is none of ${known.join(', ')}` });
  }
  for (const field of ['apiGroups', 'resources', 'verbs', 'resourceNames'] as const) {
    if (rule[field]?.length === 0)
      problems.push({ path: `${path}.${field}`, message: 'it is empty: the rule grants nothing' });
  }
  return [...problems, ...(rule.verbs.includes('bind') ? bindProblems(path, rule) : [])];
}

/** `bind` on every role would let the operator give itself all permissions. */
function bindProblems(
  path: string,
  { apiGroups, resources, verbs, resourceNames = [] }: PolicyRule,
): readonly Problem[] {
  const isOnRoles =
    apiGroups.every((group) => group === RBAC_GROUP) && resources.every((resource) => ROLES.includes(resource));
  return [
    ...(isOnRoles
      ? []
      : [{ path, message: `the verb bind is for clusterroles and roles in ${RBAC_GROUP}; give it a rule of its own` }]),
    ...(resourceNames.length > 0
      ? []
      : [
          {
            path: `${path}.resourceNames`,
            message: 'the verb bind without names grants all permissions there are: name the roles, such as ["edit"]',
          },
        ]),
    ...(verbs.length === 1
      ? []
      : [{ path: `${path}.verbs`, message: 'bind has other verbs beside it; give it a rule of its own' }]),
  ];
}
