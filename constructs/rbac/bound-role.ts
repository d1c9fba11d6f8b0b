import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { toK8sRules, type PolicyRule } from './policy-rule';

const API_GROUP = 'rbac.authorization.k8s.io';

/** Props of {@link BoundRole}. */
interface BoundRoleProps {
  /** Name of the role and of its binding. */
  readonly name: string;
  /** @default the whole cluster: a ClusterRole and a ClusterRoleBinding */
  readonly namespace?: string;
  readonly rules: readonly PolicyRule[];
  readonly serviceAccount: ServiceAccountRef;
  /** @default none */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * A Role with its RoleBinding, or a ClusterRole with its ClusterRoleBinding.
 *
 * Caveats: a binding's `roleRef` is immutable, so a change of name replaces both.
 */
export class BoundRole extends Construct {
  constructor(scope: Construct, id: string, props: BoundRoleProps) {
    super(scope, id);
    const { name, namespace } = props;
    const rules = toK8sRules(props.rules);
    const subjects = [subjectOf(props.serviceAccount)];
    const labels = { ...props.labels };
    if (namespace === undefined) {
      const role = new k8s.KubeClusterRole(this, 'role', { metadata: { name, labels }, rules });
      const binding = new k8s.KubeClusterRoleBinding(this, 'binding', {
        metadata: { name, labels },
        roleRef: { apiGroup: API_GROUP, kind: 'ClusterRole', name },
        subjects,
      });
      binding.addDependency(role);
    } else {
      const role = new k8s.KubeRole(this, 'role', { metadata: { name, namespace, labels }, rules });
      const binding = new k8s.KubeRoleBinding(this, 'binding', {
        metadata: { name, namespace, labels },
        roleRef: { apiGroup: API_GROUP, kind: 'Role', name },
        subjects,
      });
      binding.addDependency(role);
    }
  }
}

/** The ServiceAccount that a role is bound to. It need not exist yet: RBAC binds names. */
export interface ServiceAccountRef {
  readonly name: string;
  readonly namespace: string;
}

/** The account as the subject of a binding. */
function subjectOf({ name, namespace }: ServiceAccountRef): k8s.Subject {
  return { kind: 'ServiceAccount', name, namespace };
}
