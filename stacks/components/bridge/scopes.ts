import { isObject } from '../../../constructs/kube/kube-object';
import type { ResourceScope } from '../../../constructs/kube/resource-type';
import { groupKind, groupOf, type Manifest } from './manifest';

/**
 * The cluster-scoped kinds of Kubernetes' own groups. All others of these groups live in namespaces.
 * Source: the discovery documents of Kubernetes 1.36 (`kubectl api-resources --namespaced=false`), and of the versions since 1.20 for what
 * is gone since.
 */
export const clusterKinds: Readonly<Record<string, readonly string[]>> = {
  '': ['ComponentStatus', 'Namespace', 'Node', 'PersistentVolume'],
  'admissionregistration.k8s.io': [
    'MutatingAdmissionPolicy',
    'MutatingAdmissionPolicyBinding',
    'MutatingWebhookConfiguration',
    'ValidatingAdmissionPolicy',
    'ValidatingAdmissionPolicyBinding',
    'ValidatingWebhookConfiguration',
  ],
  'apiextensions.k8s.io': ['CustomResourceDefinition'],
  'apiregistration.k8s.io': ['APIService'],
  apps: [],
  'auditregistration.k8s.io': ['AuditSink'],
  'authentication.k8s.io': ['SelfSubjectReview', 'TokenReview'],
  'authorization.k8s.io': ['SelfSubjectAccessReview', 'SelfSubjectRulesReview', 'SubjectAccessReview'],
  autoscaling: [],
  batch: [],
  'certificates.k8s.io': ['CertificateSigningRequest', 'ClusterTrustBundle'],
  'coordination.k8s.io': [],
  'discovery.k8s.io': [],
  'events.k8s.io': [],
  extensions: ['PodSecurityPolicy'],
  'flowcontrol.apiserver.k8s.io': ['FlowSchema', 'PriorityLevelConfiguration'],
  'internal.apiserver.k8s.io': ['StorageVersion'],
  'networking.k8s.io': ['IPAddress', 'IngressClass', 'ServiceCIDR'],
  'node.k8s.io': ['RuntimeClass'],
  policy: ['PodSecurityPolicy'],
  'rbac.authorization.k8s.io': ['ClusterRole', 'ClusterRoleBinding'],
  'resource.k8s.io': ['DeviceClass', 'DeviceTaintRule', 'ResourceClass', 'ResourcePoolStatusRequest', 'ResourceSlice'],
  'scheduling.k8s.io': ['PriorityClass'],
  'storage.k8s.io': ['CSIDriver', 'CSINode', 'StorageClass', 'VolumeAttachment', 'VolumeAttributesClass'],
  'storagemigration.k8s.io': ['StorageVersionMigration'],
};

/** Scope of the kinds whose CRDs are among the manifests, by group and kind. */
export function scopesOfCrds(manifests: readonly Manifest[]): ReadonlyMap<string, ResourceScope> {
  return new Map(
    manifests.flatMap((manifest): [string, ResourceScope][] => {
      const defined = definedKind(manifest);
      const scope = isObject(manifest['spec']) ? manifest['spec']['scope'] : undefined;
      return defined !== undefined && (scope === 'Namespaced' || scope === 'Cluster') ? [[defined, scope]] : [];
    }),
  );
}

/** Group and kind that a CRD defines; undefined where the object is no CRD. */
export function definedKind(manifest: Manifest): string | undefined {
  if (groupKind(manifest) !== 'apiextensions.k8s.io/CustomResourceDefinition') return undefined;
  const { spec } = manifest;
  if (!isObject(spec) || !isObject(spec['names'])) return undefined;
  const { group, names } = spec;
  return typeof group === 'string' && typeof names['kind'] === 'string' ? `${group}/${names['kind']}` : undefined;
}

/** Scope of a kind of Kubernetes' own; undefined for all others. */
export function builtInScope(manifest: Manifest): ResourceScope | undefined {
  const cluster = clusterKinds[groupOf(manifest)];
  if (cluster === undefined) return undefined;
  return cluster.includes(manifest.kind) ? 'Cluster' : 'Namespaced';
}
