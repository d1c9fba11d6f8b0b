import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import type { AnyKind } from '../kind/kind';
import { mergeGrants, toK8sRules, type Grant, type PolicyRule } from './policy-rule';

/** Props of {@link AccessRoles}. */
export interface AccessRolesProps {
  readonly kind: AnyKind;
  /**
   * Aggregate these rules into the cluster's own `view`, `edit` and `admin` roles.
   * @default true for namespaced kinds, false for cluster-scoped ones: the right to edit in every namespace
   * should not include creating whole clusters
   */
  readonly aggregate?: boolean;
  /** @default none */
  readonly labels?: Readonly<Record<string, string>>;
}

const AGGREGATE_TO = 'rbac.authorization.k8s.io/aggregate-to-';

/**
 * The ClusterRoles `<plural>.<group>-viewer` and `<plural>.<group>-editor`, aggregated into the cluster's own
 * roles as Kubernetes documents it (viewer to view; editor to edit and admin; edit and admin include view
 * already).
 * Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
 */
export class AccessRoles extends Construct {
  constructor(scope: Construct, id: string, props: AccessRolesProps) {
    super(scope, id);
    const { kind } = props;
    const aggregate = props.aggregate ?? kind.scope === 'Namespaced';
    const role = (suffix: string, rules: readonly PolicyRule[], aggregateTo: readonly string[]): void => {
      const aggregated = aggregate ? aggregateTo.map((name) => [`${AGGREGATE_TO}${name}`, 'true'] as const) : [];
      new k8s.KubeClusterRole(this, suffix, {
        metadata: { name: `${kind.crdName}-${suffix}`, labels: { ...props.labels, ...Object.fromEntries(aggregated) } },
        rules: toK8sRules(rules),
      });
    };
    role('viewer', viewerRules(kind), ['view']);
    role('editor', editorRules(kind), ['edit', 'admin']);
  }
}

/** Rules to read a kind's objects and their subresources. */
export function viewerRules(kind: AnyKind): readonly PolicyRule[] {
  return mergeGrants([
    grant(kind, '', 'get', 'list', 'watch'),
    grant(kind, '/status', 'get'),
    ...(kind.scale === undefined ? [] : [grant(kind, '/scale', 'get')]),
  ]);
}

/** Rules to read and write a kind's objects. Only the operator may write the status. */
export function editorRules(kind: AnyKind): readonly PolicyRule[] {
  return mergeGrants([
    grant(kind, '', 'get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'),
    grant(kind, '/status', 'get'),
    ...(kind.scale === undefined ? [] : [grant(kind, '/scale', 'get', 'update', 'patch')]),
  ]);
}

function grant(kind: AnyKind, subresource: string, ...verbs: Grant['verbs']): Grant {
  return { group: kind.group, resource: `${kind.plural}${subresource}`, verbs };
}
