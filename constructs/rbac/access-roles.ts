import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import type { AnyKind } from '../kind/kind';
import { mergeGrants, toK8sRules, type Grant, type PolicyRule, type Verb } from './policy-rule';

const AGGREGATE_TO = 'rbac.authorization.k8s.io/aggregate-to-';

/** What people may do with the objects of a kind. */
export interface AccessRolesProps {
  readonly kind: AnyKind;
  /**
   * Let the cluster's own `view`, `edit` and `admin` roles take these rules in.
   * @default true for namespaced kinds, false for cluster-scoped ones: who may edit in every namespace is not yet meant to order
   * whole clusters
   */
  readonly aggregate?: boolean;
  /** @default none */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Reading a kind's objects and their subresources. */
export function viewerRules(kind: AnyKind): readonly PolicyRule[] {
  return mergeGrants([
    grant(kind, '', 'get', 'list', 'watch'),
    grant(kind, '/status', 'get'),
    ...(kind.scale === undefined ? [] : [grant(kind, '/scale', 'get')]),
  ]);
}

/** All of a person's work with a kind's objects. The status stays the operator's. */
export function editorRules(kind: AnyKind): readonly PolicyRule[] {
  return mergeGrants([
    grant(kind, '', 'get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'),
    grant(kind, '/status', 'get'),
    ...(kind.scale === undefined ? [] : [grant(kind, '/scale', 'get', 'update', 'patch')]),
  ]);
}

/**
 * The ClusterRoles `<plural>.<group>-viewer` and `<plural>.<group>-editor`, aggregated into the cluster's own roles as
 * Kubernetes documents it (viewer to view; editor to edit and admin; edit and admin take view in by themselves).
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

function grant(kind: AnyKind, subresource: string, ...verbs: readonly Verb[]): Grant {
  return { group: kind.group, resource: `${kind.plural}${subresource}`, verbs };
}
