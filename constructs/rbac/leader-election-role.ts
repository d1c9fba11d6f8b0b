import { Construct } from 'constructs';
import { BoundRole } from './bound-role';
import type { PolicyRule } from './policy-rule';
import type { ServiceAccountRef } from './service-account-ref';

/** What a {@link LeaderElectionRole} is made of. */
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

/**
 * What leader election needs: get and update (acquire, renew, release) of the one Lease, and create, which RBAC cannot limit by
 * name because a request to create carries none.
 */
export function leaderElectionRules(leaseName: string): readonly PolicyRule[] {
  const lease = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return [
    { ...lease, verbs: ['create'] },
    { ...lease, verbs: ['get', 'update'], resourceNames: [leaseName] },
  ];
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
