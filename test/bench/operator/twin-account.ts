import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import type { ApiClient } from '../../../operator/client/api-client';

const SERVICE_ACCOUNTS: ResourceType = {
  ...{ apiVersion: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts', scope: 'Namespaced' },
};
const CLUSTER_ROLES: ResourceType = {
  ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', plural: 'clusterroles', scope: 'Cluster' },
};
const CLUSTER_ROLE_BINDINGS: ResourceType = {
  ...CLUSTER_ROLES,
  ...{ kind: 'ClusterRoleBinding', plural: 'clusterrolebindings' },
};

/** Who the twins are. */
export const twinAccount = { namespace: 'default', name: 'bench-twin' } as const;

const options = { fieldManager: 'bench' };
const metadata = { name: twinAccount.name };

/** Makes the twins' ServiceAccount, with what a scaffolded operator may do. */
export async function makeTwinAccount(client: ApiClient): Promise<void> {
  const { type } = HelloApp;
  const [group = ''] = HelloApp.apiVersion.split('/');
  const reads = ['get', 'list', 'watch'];
  const rules = [
    { apiGroups: [group], resources: [type.plural], verbs: reads },
    { apiGroups: [group], resources: [`${type.plural}/status`], verbs: ['get', 'patch', 'update'] },
    { apiGroups: [group], resources: [`${type.plural}/finalizers`], verbs: ['update'] },
    { apiGroups: ['apps'], resources: ['deployments'], verbs: [...reads, 'create', 'patch', 'update', 'delete'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...reads, 'create', 'patch', 'update'] },
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ];
  const role: KubeObject = { ...identity(CLUSTER_ROLES), metadata, rules };
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name };
  const subjects = [{ kind: 'ServiceAccount', ...twinAccount }];
  await client.create(SERVICE_ACCOUNTS, { ...identity(SERVICE_ACCOUNTS), metadata: twinAccount }, options);
  await client.create(CLUSTER_ROLES, role, options);
  const binding: KubeObject = { ...identity(CLUSTER_ROLE_BINDINGS), metadata, roleRef, subjects };
  await client.create(CLUSTER_ROLE_BINDINGS, binding, options);
}

function identity({ apiVersion, kind }: ResourceType): Pick<KubeObject, 'apiVersion' | 'kind'> {
  return { apiVersion, kind };
}
