import type { AnyKind } from '../core/kind';
import { groupOf } from '../core/resource-type';
import type { ResourceScope, ResourceType } from '../core/resource-type';
import { mergeGrants } from './policy-rule';
import type { Grant, PolicyRule, Verb } from './policy-rule';

/** Which of the rules to derive. */
export interface OperatorRulesOptions {
  /**
   * Only the rules on resources of this scope: a Role in a namespace cannot grant cluster-scoped ones.
   * @default both
   */
  readonly scope?: ResourceScope;
}

/** What recording an event needs: POST of a new one, PATCH of the series of one that recurs. */
const eventGrant: Grant = Object.freeze({
  group: 'events.k8s.io',
  resource: 'events',
  verbs: ['create', 'patch'] as const,
});

/** The rules for events alone. The events of cluster-scoped objects stand in the namespace `default`. */
export const eventRules: readonly PolicyRule[] = mergeGrants([eventGrant]);

/**
 * The least that the operator needs to run the given kinds, as data.
 *
 * | resource | verbs | the request that needs them |
 * |---|---|---|
 * | the kind | list, watch | the reflector: paged list, streaming list, watch |
 * | the kind | patch | only with a finalizer: adding it, and dropping it when the children are gone |
 * | `<plural>/status` | patch | server-side apply of the status |
 * | `<plural>/finalizers` | update | no request: the admission plugin OwnerReferencesPermissionEnforcement asks for it when a child is written with `blockOwnerDeletion`; only with `owns`, since shared children block nothing |
 * | child types | get | the fresh read when a create says that the name is taken, and before fields change hands |
 * | child types | list, watch | the reflector |
 * | child types | create | POST of a missing child |
 * | child types | patch | server-side apply of what differs; a seeded field's hand-over too |
 * | child types | delete | pruning; OwnerReferencesPermissionEnforcement asks for it as well when owner references change |
 * | formerly owned types | list, watch, delete | finding and pruning what an earlier version made; never created nor changed |
 * | `events` in `events.k8s.io` | create, patch | recording an event, and the series of one that recurs |
 *
 * Guarantees: no `*`; verbs united by resource; the same rules in the same order for the same kinds in any order.
 *
 * With `scope: 'Namespaced'`, events are among the rules only if a kind is namespaced; with `scope: 'Cluster'` they never are, see
 * {@link eventRules}.
 *
 * @param kinds the kinds that one operator runs
 */
export function operatorRules(kinds: readonly AnyKind[], options: OperatorRulesOptions = {}): readonly PolicyRule[] {
  const wanted = (scope: ResourceScope): boolean => options.scope === undefined || scope === options.scope;
  const grants = kinds
    .flatMap((kind) => [...kindGrants(kind), ...childGrants(kind)])
    .filter(({ scope }) => wanted(scope));
  const recordsEvents = options.scope !== 'Cluster' && kinds.some(({ scope }) => wanted(scope));
  return mergeGrants(recordsEvents ? [...grants, eventGrant] : grants);
}

interface ScopedGrant extends Grant {
  readonly scope: ResourceScope;
}

function kindGrants(kind: AnyKind): readonly ScopedGrant[] {
  const { group, plural, scope } = kind;
  const grant = (resource: string, ...verbs: readonly Verb[]): ScopedGrant => ({ group, resource, verbs, scope });
  return [
    grant(plural, 'list', 'watch'),
    ...(kind.finalizer === undefined ? [] : [grant(plural, 'patch')]),
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

function childGrant(type: ResourceType, ...verbs: readonly Verb[]): ScopedGrant {
  return { group: groupOf(type), resource: type.plural, verbs, scope: type.scope };
}
