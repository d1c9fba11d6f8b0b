import { Construct } from 'constructs';
import { keptGoneTypes } from '../kind/child-policy';
import { storesState } from '../kind/effects';
import type { AnyKind } from '../kind/kind';
import { groupOf, owned, type ResourceScope, type ResourceType } from '../kube/resource-type';
import { STATE_KEY_SECRET } from '../kube/envelope';
import { BoundRole, type ServiceAccountRef } from './bound-role';
import {
  WHOLE_CLUSTER,
  extraRulesProblems,
  mergeGrants,
  type Grant,
  type KindRule,
  type NamespacedRules,
  type PolicyRule,
} from './policy-rule';

/** Props of {@link OperatorRole}. */
export interface OperatorRoleProps {
  /** Name of every role and binding. It must be unique among all ClusterRoles of the cluster. */
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
   * Rules that the kinds' own code needs besides those for their children, by namespace: to read the Secrets
   * that specs refer to, for example. Under `'*'` those for the whole cluster, which a ClusterRole grants
   * though `namespaces` confines the operator.
   * @default none
   */
  readonly extraRules?: NamespacedRules;
  /** Labels of every object. @default none */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * The permissions of an operator, derived from its kinds by {@link operatorRules}, bound to its
 * ServiceAccount.
 *
 * Errors: TypeError when there are no kinds, `namespaces` is empty, or an extra rule grants `*`.
 */
export class OperatorRole extends Construct {
  constructor(scope: Construct, id: string, props: OperatorRoleProps) {
    super(scope, id);
    assertValidProps(props);
    const { name, serviceAccount, labels = {} } = props;
    const derived = operatorRules(props.kinds, props.namespaces === undefined ? {} : { scope: 'Cluster' });
    const clusterRules = withRules(derived, props.extraRules?.[WHOLE_CLUSTER] ?? []);
    if (clusterRules.length > 0) new BoundRole(this, 'cluster', { name, serviceAccount, labels, rules: clusterRules });
    for (const [namespace, rules] of namespacedRules(props)) {
      new BoundRole(this, `namespace-${namespace}`, { name, namespace, serviceAccount, labels, rules });
    }
  }
}

function assertValidProps(props: OperatorRoleProps): void {
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

/** Where the API server expects the events of cluster-scoped objects. */
const CLUSTER_EVENTS_NAMESPACE = 'default';

function namespacedRules(props: OperatorRoleProps): readonly (readonly [string, readonly PolicyRule[]])[] {
  const byNamespace = new Map<string, readonly PolicyRule[]>();
  const add = (namespace: string, rules: readonly PolicyRule[]): void => {
    const all = withRules(byNamespace.get(namespace) ?? [], rules);
    if (all.length > 0) byNamespace.set(namespace, all);
  };
  if (props.namespaces !== undefined) {
    const rules = operatorRules(props.kinds, { scope: 'Namespaced' });
    for (const namespace of new Set(props.namespaces)) add(namespace, rules);
    const covered =
      props.namespaces.includes(CLUSTER_EVENTS_NAMESPACE) && props.kinds.some(({ scope }) => scope === 'Namespaced');
    if (!covered && props.kinds.some(({ scope }) => scope === 'Cluster')) add(CLUSTER_EVENTS_NAMESPACE, eventRules);
  }
  add(props.serviceAccount.namespace, ownNamespaceRules(props.kinds));
  const { [WHOLE_CLUSTER]: _, ...extraRules } = props.extraRules ?? {};
  for (const [namespace, rules] of Object.entries(extraRules)) add(namespace, rules);
  return [...byNamespace].sort(([a], [b]) => (a < b ? -1 : 1));
}

/**
 * What the effects of kinds need in the operator's own namespace: the states of cluster-scoped objects and what these read,
 * and the key of the states of namespaced ones.
 */
function ownNamespaceRules(kinds: readonly AnyKind[]): readonly PolicyRule[] {
  const [wide, narrow] = [kinds.filter(({ scope }) => scope === 'Cluster'), kinds.filter(isNamespaced)];
  const reads = wide.flatMap((kind) => kind.reads.filter(({ type }) => type.scope === 'Namespaced'));
  const states = wide.some(storesState) ? [stateGrant(owned.Secret)] : [];
  const rules = mergeGrants([...states, ...reads.map(({ type }) => childGrant(type, 'get'))]);
  if (!narrow.some(storesState)) return rules;
  const secrets = { apiGroups: [''], resources: ['secrets'] };
  return [
    ...rules,
    // A create request has no name that RBAC could limit it to.
    { ...secrets, verbs: ['create'] },
    { ...secrets, verbs: ['get'], resourceNames: [STATE_KEY_SECRET] },
  ];
}

function isNamespaced({ scope }: AnyKind): boolean {
  return scope === 'Namespaced';
}

/** The rules, and those of some more that are not among them. */
function withRules(rules: readonly PolicyRule[], more: readonly PolicyRule[]): readonly PolicyRule[] {
  return [...rules, ...more.filter((rule) => !rules.some((other) => isSameRule(rule, other)))];
}

/** Both lists of verbs are in the order of `mergeGrants`, or written alike. */
function isSameRule(a: PolicyRule, b: PolicyRule): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Which of the rules to derive. */
export interface OperatorRulesOptions {
  /**
   * Only the rules on resources of this scope: a Role in a namespace cannot grant cluster-scoped ones.
   * @default both
   */
  readonly scope?: ResourceScope;
}

/**
 * The minimal rules that the operator needs to run the given kinds.
 *
 * | resource | verbs | the request that needs them |
 * |---|---|---|
 * | the kind | list, watch | the informer: paged list, streaming list, watch |
 * | the kind | patch | only with a finalizer: adding it, and dropping it when the children are deleted; or with `whenGone: 'keep-gone'`: recording which children were current |
 * | `<plural>/status` | patch | server-side apply of the status |
 * | `<plural>/finalizers` | update | no request: the admission plugin OwnerReferencesPermissionEnforcement requires it when a child is written with `blockOwnerDeletion`; only with `owns`, since shared children block nothing |
 * | child types | get | the live read when a create fails with AlreadyExists, and before a field is handed over |
 * | child types | list, watch | the informer |
 * | child types | create | POST of a missing child |
 * | child types | patch | server-side apply of what differs; a seeded field's hand-over too |
 * | child types | delete | pruning; OwnerReferencesPermissionEnforcement requires it too when owner references change |
 * | formerly owned types | list, watch, delete | finding and pruning the children of an earlier version; they are never created or changed |
 * | read types of a namespaced kind | get | what its effects read, in the object's own namespace |
 * | `configmaps`, for a namespaced kind with effects | get, create, update, delete | the sealed state of an object's effects; OwnerReferencesPermissionEnforcement requires delete |
 * | read types of the cluster's scope | get | what effects read |
 * | `events` in `events.k8s.io` | create, patch | recording an event, and the series of one that recurs |
 * | the kind's `extraRules` | as they say | as their kind says; each stays a rule of its own, behind the others |
 *
 * What effects read and store in the operator's own namespace, {@link OperatorRole} adds; what they read in further
 * namespaces, `extraRules` has to grant.
 *
 * Guarantees: no `*`; verbs united by resource; the same rules in the same order for the same kinds in any
 * order.
 *
 * With `scope: 'Namespaced'`, events are among the rules only if a kind is namespaced. With
 * `scope: 'Cluster'` they never are, see {@link eventRules}.
 *
 * @param kinds the kinds that one operator runs
 */
export function operatorRules(kinds: readonly AnyKind[], options: OperatorRulesOptions = {}): readonly PolicyRule[] {
  const wanted = (scope: ResourceScope): boolean => options.scope === undefined || scope === options.scope;
  const grants = kinds
    .flatMap((kind) => [...kindGrants(kind), ...childGrants(kind), ...effectGrants(kind)])
    .filter(({ scope }) => wanted(scope));
  const recordsEvents = options.scope !== 'Cluster' && kinds.some(({ scope }) => wanted(scope));
  const extra = kinds.flatMap((kind) => kind.extraRules.filter(({ scope = kind.scope }) => wanted(scope)));
  return withRules(mergeGrants(recordsEvents ? [...grants, eventGrant] : grants), inOrder(extra.map(toPolicyRule)));
}

function toPolicyRule({ apiGroups, resources, verbs, resourceNames }: KindRule): PolicyRule {
  return { apiGroups, resources, verbs, ...(resourceNames === undefined ? {} : { resourceNames }) };
}

/** Each of some rules once, in an order that does not depend on that of the kinds. */
function inOrder(rules: readonly PolicyRule[]): readonly PolicyRule[] {
  const byText = new Map(rules.map((rule) => [JSON.stringify(rule), rule]));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, rule]) => rule);
}

/** What the operator needs to record events: POST for a new one, PATCH for the series of one that recurs. */
const eventGrant: Grant = Object.freeze({
  group: 'events.k8s.io',
  resource: 'events',
  verbs: ['create', 'patch'] as const,
});

/** The rules for events alone. The events of cluster-scoped objects are in the namespace `default`. */
const eventRules: readonly PolicyRule[] = mergeGrants([eventGrant]);

interface ScopedGrant extends Grant {
  readonly scope: ResourceScope;
}

function kindGrants(kind: AnyKind): readonly ScopedGrant[] {
  const { group, plural, scope } = kind;
  const grant = (resource: string, ...verbs: Grant['verbs']): ScopedGrant => ({
    group,
    resource,
    verbs,
    scope,
  });
  return [
    grant(plural, 'list', 'watch'),
    ...(kind.finalizer === undefined && keptGoneTypes(kind).length === 0 ? [] : [grant(plural, 'patch')]),
    grant(`${plural}/status`, 'patch'),
    ...(kind.owns.length === 0 ? [] : [grant(`${plural}/finalizers`, 'update')]),
  ];
}

function childGrants(kind: AnyKind): readonly ScopedGrant[] {
  const living = [...kind.owns, ...kind.shared.flatMap(({ owns }) => owns)];
  return [
    ...living.map((type) => childGrant(type, 'get', 'list', 'watch', 'create', 'patch', 'delete')),
    ...kind.formerlyOwned.map((type) => childGrant(type, 'list', 'watch', 'delete')),
  ];
}

/** What effects store and read in the namespaces of the objects, and of the cluster's scope. */
function effectGrants(kind: AnyKind): readonly ScopedGrant[] {
  const reads = kind.reads.filter(({ type }) => isNamespaced(kind) || type.scope === 'Cluster');
  const states = isNamespaced(kind) && storesState(kind) ? [stateGrant(owned.ConfigMap)] : [];
  return [...reads.map(({ type }) => childGrant(type, 'get')), ...states];
}

/**
 * What the operator needs to store states. Only a client that may delete an object may change its owners
 * (OwnerReferencesPermissionEnforcement).
 */
function stateGrant(type: ResourceType): ScopedGrant {
  return childGrant(type, 'get', 'create', 'update', 'delete');
}

function childGrant(type: ResourceType, ...verbs: Grant['verbs']): ScopedGrant {
  return { group: groupOf(type), resource: type.plural, verbs, scope: type.scope };
}

/** Props of {@link LeaderElectionRole}. */
export interface LeaderElectionRoleProps {
  /** Name of the Role and its binding. */
  readonly name: string;
  /** Namespace of the Lease, usually the operator's own. */
  readonly namespace: string;
  readonly leaseName: string;
  readonly serviceAccount: ServiceAccountRef;
  /** @default none */
  readonly labels?: Readonly<Record<string, string>>;
}

/** A Role and RoleBinding for leader election by one Lease. */
export class LeaderElectionRole extends Construct {
  constructor(scope: Construct, id: string, props: LeaderElectionRoleProps) {
    super(scope, id);
    const { name, namespace, serviceAccount, labels = {} } = props;
    const rules = leaderElectionRules(props.leaseName);
    new BoundRole(this, 'lease', { name, namespace, serviceAccount, labels, rules });
  }
}

/**
 * The rules for leader election: get and update (acquire, renew, release) of the one Lease, and create, which
 * RBAC cannot limit by name because a create request has none.
 */
export function leaderElectionRules(leaseName: string): readonly PolicyRule[] {
  const lease = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return [
    { ...lease, verbs: ['create'] },
    { ...lease, verbs: ['get', 'update'], resourceNames: [leaseName] },
  ];
}
