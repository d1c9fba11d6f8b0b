import { Construct } from 'constructs';
import type { AnyKind } from '../core/kind';
import { BoundRole } from './bound-role';
import { extraRulesProblems } from './extra-rules';
import type { NamespacedRules } from './extra-rules';
import { eventRules, operatorRules } from './operator-rules';
import type { PolicyRule } from './policy-rule';
import type { ServiceAccountRef } from './service-account-ref';

/** Where the API server expects the events of cluster-scoped objects. */
const CLUSTER_EVENTS_NAMESPACE = 'default';

/** What an {@link OperatorRole} is made of. */
export interface OperatorRoleProps {
  /** Name of every role and binding. ClusterRoles share one namespace with the whole cluster's. */
  readonly name: string;
  /** The kinds that the operator runs. At least one. */
  readonly kinds: readonly AnyKind[];
  readonly serviceAccount: ServiceAccountRef;
  /**
   * The namespaces that the operator is confined to: a Role in each of them. Cluster-scoped kinds still get a ClusterRole, limited to
   * what is cluster-scoped, and a Role in `default` for their events.
   * @default the whole cluster, by a ClusterRole
   */
  readonly namespaces?: readonly string[];
  /**
   * What the kinds' own code needs besides their children, by namespace: reading the Secrets that specs refer to, for example.
   * @default none
   */
  readonly extraRules?: NamespacedRules;
  /** Labels of every object. @default none */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * What an operator may do, derived from its kinds by {@link operatorRules}, bound to its ServiceAccount.
 *
 * Errors: TypeError when there are no kinds, `namespaces` is empty, or an extra rule asks for `*`.
 */
export class OperatorRole extends Construct {
  constructor(scope: Construct, id: string, props: OperatorRoleProps) {
    super(scope, id);
    check(props);
    const { name, serviceAccount, labels = {} } = props;
    const clusterRules = operatorRules(props.kinds, props.namespaces === undefined ? {} : { scope: 'Cluster' });
    if (clusterRules.length > 0) new BoundRole(this, 'cluster', { name, serviceAccount, labels, rules: clusterRules });
    for (const [namespace, rules] of namespacedRules(props)) {
      new BoundRole(this, `namespace-${namespace}`, { name, namespace, serviceAccount, labels, rules });
    }
  }
}

function namespacedRules(props: OperatorRoleProps): readonly (readonly [string, readonly PolicyRule[]])[] {
  const byNamespace = new Map<string, readonly PolicyRule[]>();
  const add = (namespace: string, rules: readonly PolicyRule[]): void => {
    if (rules.length > 0) byNamespace.set(namespace, [...(byNamespace.get(namespace) ?? []), ...rules]);
  };
  if (props.namespaces !== undefined) {
    const rules = operatorRules(props.kinds, { scope: 'Namespaced' });
    for (const namespace of new Set(props.namespaces)) add(namespace, rules);
    const covered =
      props.namespaces.includes(CLUSTER_EVENTS_NAMESPACE) && props.kinds.some(({ scope }) => scope === 'Namespaced');
    if (!covered && props.kinds.some(({ scope }) => scope === 'Cluster')) add(CLUSTER_EVENTS_NAMESPACE, eventRules);
  }
  for (const [namespace, rules] of Object.entries(props.extraRules ?? {})) add(namespace, rules);
  return [...byNamespace].sort(([a], [b]) => (a < b ? -1 : 1));
}

function check(props: OperatorRoleProps): void {
  if (props.kinds.length === 0) {
    throw new TypeError(`OperatorRole ${props.name}: \`kinds\` is empty; an operator without kinds needs no role`);
  }
  if (props.namespaces?.length === 0) {
    throw new TypeError(
      `OperatorRole ${props.name}: \`namespaces\` is empty; name one or more, or leave it out for the whole cluster`,
    );
  }
  const [problem] = extraRulesProblems('extraRules', props.extraRules);
  if (problem !== undefined) throw new TypeError(`OperatorRole ${props.name}: ${problem.path}: ${problem.message}`);
}
