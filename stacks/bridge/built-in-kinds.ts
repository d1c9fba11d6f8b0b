import { isObject } from '../../constructs/kube/kube-object';
import type { ResourceScope } from '../../constructs/kube/resource-type';
import { groupKind, groupOf, type Manifest } from './manifest';

/**
 * The cluster-scoped kinds of Kubernetes' own groups. All others of these groups live in namespaces.
 * Source: the discovery documents of Kubernetes 1.36 (`kubectl api-resources --namespaced=false`), and of the
 * versions since 1.20 for kinds that were removed.
 *
 * @testonly
 */
export const clusterScopedKinds: Readonly<Record<string, readonly string[]>> = {
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

/** Scope of a kind of Kubernetes' own; undefined for all others. */
export function builtInScope(manifest: Manifest): ResourceScope | undefined {
  const cluster = clusterScopedKinds[groupOf(manifest)];
  if (cluster === undefined) return undefined;
  return cluster.includes(manifest.kind) ? 'Cluster' : 'Namespaced';
}

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

/** Group and kind that a CRD defines; undefined if the object is no CRD. */
export function definedKind(manifest: Manifest): string | undefined {
  if (groupKind(manifest) !== 'apiextensions.k8s.io/CustomResourceDefinition') return undefined;
  const { spec } = manifest;
  if (!isObject(spec) || !isObject(spec['names'])) return undefined;
  const { group, names } = spec;
  return typeof group === 'string' && typeof names['kind'] === 'string' ? `${group}/${names['kind']}` : undefined;
}

/**
 * Kubernetes' own kinds that one group serves in several versions, by these versions.
 *
 * A table, since loading the classes of @pulumi/kubernetes, which contain it, would load thousands of
 * modules. A test compares it with all of them.
 * Source: the aliases of the classes of @pulumi/kubernetes 4.34.
 */
const versionsWithinGroup: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'admissionregistration.k8s.io': {
    'v1 v1alpha1 v1beta1':
      'MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding',
    'v1 v1beta1': 'MutatingWebhookConfiguration ValidatingWebhookConfiguration',
  },
  'apiextensions.k8s.io': { 'v1 v1beta1': 'CustomResourceDefinition' },
  apps: { 'v1 v1beta1 v1beta2': 'ControllerRevision StatefulSet' },
  autoscaling: { 'v1 v2 v2beta1 v2beta2': 'HorizontalPodAutoscaler' },
  batch: { 'v1 v1beta1 v2alpha1': 'CronJob' },
  'certificates.k8s.io': {
    'v1 v1alpha1 v1beta1': 'ClusterTrustBundle',
    'v1 v1beta1': 'CertificateSigningRequest PodCertificateRequest',
  },
  'coordination.k8s.io': { 'v1 v1beta1': 'Lease', 'v1alpha1 v1alpha2 v1beta1': 'LeaseCandidate' },
  'discovery.k8s.io': { 'v1 v1beta1': 'EndpointSlice' },
  'flowcontrol.apiserver.k8s.io': { 'v1 v1alpha1 v1beta1 v1beta2 v1beta3': 'FlowSchema PriorityLevelConfiguration' },
  'networking.k8s.io': { 'v1 v1alpha1 v1beta1': 'IPAddress ServiceCIDR', 'v1 v1beta1': 'IngressClass' },
  'node.k8s.io': { 'v1 v1alpha1 v1beta1': 'RuntimeClass' },
  policy: { 'v1 v1beta1': 'PodDisruptionBudget' },
  'rbac.authorization.k8s.io': { 'v1 v1alpha1 v1beta1': 'ClusterRole ClusterRoleBinding Role RoleBinding' },
  'resource.k8s.io': {
    'v1 v1alpha1 v1alpha2 v1alpha3 v1beta1 v1beta2': 'ResourceClaim ResourceClaimTemplate',
    'v1 v1alpha2 v1alpha3 v1beta1 v1beta2': 'ResourceSlice',
    'v1 v1alpha3 v1beta1 v1beta2': 'DeviceClass',
    'v1 v1alpha3 v1beta2': 'DeviceTaintRule',
    'v1alpha1 v1alpha2': 'ResourceClass',
    'v1alpha2 v1alpha3': 'PodSchedulingContext',
  },
  'scheduling.k8s.io': {
    'v1 v1alpha1 v1beta1': 'PriorityClass',
    'v1alpha1 v1alpha2 v1alpha3 v1beta1': 'Workload',
    'v1alpha2 v1alpha3 v1beta1': 'PodGroup',
  },
  'storage.k8s.io': {
    'v1 v1alpha1 v1beta1': 'CSIStorageCapacity VolumeAttachment VolumeAttributesClass',
    'v1 v1beta1': 'CSIDriver CSINode StorageClass',
  },
  'storagemigration.k8s.io': { 'v1 v1alpha1 v1beta1': 'StorageVersionMigration' },
};

/**
 * Kinds that several groups serve or served, by `apiVersion`s. Early providers had another group for
 * APIService.
 */
const versionsAcrossGroups: Readonly<Record<string, string>> = {
  'apiregistration.k8s.io/v1 apiregistration.k8s.io/v1beta1 apiregistration/v1 apiregistration/v1beta1': 'APIService',
  'apps/v1 apps/v1beta1 apps/v1beta2 extensions/v1beta1': 'Deployment',
  'apps/v1 apps/v1beta2 extensions/v1beta1': 'DaemonSet ReplicaSet',
  'v1 events.k8s.io/v1 events.k8s.io/v1beta1': 'Event',
  'extensions/v1beta1 networking.k8s.io/v1': 'NetworkPolicy',
  'extensions/v1beta1 networking.k8s.io/v1 networking.k8s.io/v1beta1': 'Ingress',
  'extensions/v1beta1 policy/v1beta1': 'PodSecurityPolicy',
};

const families = familiesByObject();

/**
 * The other `apiVersion`s under which the server has the same object, for Kubernetes' own kinds:
 * `autoscaling/v1` for a HorizontalPodAutoscaler of `autoscaling/v2`. None for other kinds.
 */
export function otherBuiltInVersions({ apiVersion, kind }: Pick<Manifest, 'apiVersion' | 'kind'>): readonly string[] {
  return (families.get(`${apiVersion}/${kind}`) ?? []).filter((other) => other !== apiVersion);
}

function familiesByObject(): ReadonlyMap<string, readonly string[]> {
  const oneGroup = Object.entries(versionsWithinGroup).flatMap(([group, byVersions]) =>
    Object.entries(byVersions).map(([versions, kinds]) => ({
      apiVersions: versions.split(' ').map((version) => `${group}/${version}`),
      kinds,
    })),
  );
  const severalGroups = Object.entries(versionsAcrossGroups).map(([apiVersions, kinds]) => ({
    apiVersions: apiVersions.split(' '),
    kinds,
  }));
  return new Map(
    [...oneGroup, ...severalGroups].flatMap(({ apiVersions, kinds }) =>
      kinds.split(' ').flatMap((kind) => apiVersions.map((one) => [`${one}/${kind}`, apiVersions] as const)),
    ),
  );
}
