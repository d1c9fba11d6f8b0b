import { CustomResource } from '../crd';
import type { Effect, InputReader } from '../kind/effects';
import { defineKind, type KindObject, type TypedObject } from '../kind/kind';
import type { ObjectKeyRef, Read } from '../kind/reads';
import { cel } from '../kind/schema/cel';
import { LOST_MACHINES_ANNOTATION } from '../kube/envelope';
import { owned } from '../kube/resource-type';
import { clusterSpec, clusterStatus } from './cluster-spec';
import { Kubeconfig } from './kubeconfig';

type Self = TypedObject<typeof clusterSpec, typeof clusterStatus>;
type Spec = Self['spec'];

const HOUR_SECONDS = 3600;

/** SSH keys for the machines. A new key alone changes nothing on them, so no input has its digest. */
function sshKeyRefs({ sshKeySecretRef, nodes = [] }: Spec): readonly ObjectKeyRef[] {
  return [sshKeySecretRef, ...nodes.map(({ bastion }) => bastion?.sshKeySecretRef)].filter((ref) => ref !== undefined);
}

const pair = (
  ref: { readonly namespace: string; readonly name: string } | undefined,
  first: string,
  second: string,
): readonly (ObjectKeyRef | undefined)[] => (ref === undefined ? [] : [first, second].map((key) => ({ ...ref, key })));

/** Secrets whose values end up in configuration files on the machines. */
function credentialRefs({ rke, rke2, k3s }: Spec): readonly ObjectKeyRef[] {
  const stores = [rke?.services?.etcd?.snapshots?.s3, rke2?.etcdSnapshots?.s3, k3s?.etcdSnapshots?.s3];
  const registries = [...(rke2?.registries ?? []), ...(k3s?.registries ?? [])];
  return [
    ...stores.flatMap((s3) => [...pair(s3?.credentialsSecretRef, 'accessKey', 'secretKey'), s3?.caSecretRef]),
    ...[...(rke?.privateRegistries ?? []), ...registries].flatMap(({ credentialsSecretRef }) =>
      pair(credentialsSecretRef, 'username', 'password'),
    ),
    ...registries.map(({ caSecretRef }) => caSecretRef),
    k3s?.datastore?.endpointSecretRef,
  ].filter((ref) => ref !== undefined);
}

/** The Secrets that a Cluster reads. */
const clusterReads: readonly Read<Self>[] = [
  {
    name: 'config',
    type: owned.Secret,
    refs: ({ spec }) => (spec.configSecretRef === undefined ? [] : [spec.configSecretRef]),
  },
  { name: 'ssh-key', type: owned.Secret, refs: ({ spec }) => sshKeyRefs(spec) },
  { name: 'credentials', type: owned.Secret, refs: ({ spec }) => credentialRefs(spec) },
];

/**
 * Machines that a user declared permanently lost. Without any, the field is absent, which leaves the input as
 * it was.
 */
function lostMachines({ metadata }: Self): { readonly lost?: readonly string[] } {
  const lost = (metadata.annotations?.[LOST_MACHINES_ANNOTATION] ?? '').split(/[\s,]+/).filter((word) => word !== '');
  return lost.length === 0 ? {} : { lost: [...new Set(lost)].sort() };
}

/** A way to specify a cluster, with the plans that provision and remove it. */
interface ClusterSource {
  /** Suffix of the effects' names. */
  readonly name: string;
  readonly plans: { readonly up: string; readonly remove: string };
  readonly matches: (spec: Spec) => boolean;
  /** The part of the input that describes the cluster to the plan. */
  readonly planInput: (spec: Spec) => Readonly<Record<string, unknown>>;
  /** Digests of values outside the spec that determine the cluster too. */
  readonly digests: (spec: Spec, read: InputReader) => Readonly<Record<string, unknown>>;
  readonly files?: (spec: Spec) => readonly string[];
}

const RKE_PLANS = { up: 'rke.up', remove: 'rke.remove' };

const configPathSource: ClusterSource = {
  name: 'config-path',
  plans: RKE_PLANS,
  matches: (spec) => spec.configPath !== undefined,
  planInput: (spec) => ({ file: spec.configPath, hostKeys: spec.hostKeys }),
  digests: ({ configPath: path }, read) => (path === undefined ? {} : { config: read.fileDigest(path) }),
  files: ({ configPath: path }) => (path === undefined ? [] : [path]),
};

const configSecretSource: ClusterSource = {
  name: 'config-secret',
  plans: RKE_PLANS,
  matches: (spec) => spec.configSecretRef !== undefined,
  planInput: (spec) => ({ secret: spec.configSecretRef, hostKeys: spec.hostKeys }),
  digests: ({ configSecretRef: ref }, read) => (ref === undefined ? {} : { config: read.digest(owned.Secret, ref) }),
};

const distributionSource = (distribution: 'rke' | 'rke2' | 'k3s'): ClusterSource => ({
  name: distribution,
  plans: { up: `${distribution}.up`, remove: `${distribution}.remove` },
  matches: (spec) => spec.distribution === distribution,
  planInput: (spec) => ({
    nodes: spec.nodes,
    version: spec.version,
    options: spec[distribution] ?? {},
    installer: spec.installer,
  }),
  digests: (spec, read) =>
    Object.fromEntries(
      credentialRefs(spec).map((ref) => [[ref.namespace, ref.name, ref.key].join('/'), read.digest(owned.Secret, ref)]),
    ),
});

const sources = [
  configPathSource,
  configSecretSource,
  distributionSource('rke'),
  distributionSource('rke2'),
  distributionSource('k3s'),
];

const provisionEffect = (source: ClusterSource): Effect<Self> => ({
  name: `provision-${source.name}`,
  phase: 'apply',
  plan: source.plans.up,
  when: ({ spec }) => source.matches(spec),
  input: (self, read) => ({
    cluster: self.metadata.name,
    ...source.planInput(self.spec),
    sshKey: self.spec.sshKeySecretRef,
    digests: source.digests(self.spec, read),
    ...lostMachines(self),
  }),
  ...(source.files === undefined ? {} : { files: ({ spec }: Self) => source.files?.(spec) ?? [] }),
  timeoutSeconds: 4 * HOUR_SECONDS,
  maxAttempts: ({ spec }) => spec.maxAttempts,
  condition: 'Provisioned',
});

/**
 * Reads no file and no Secret of the spec: they may no longer exist, and the state Secret has what was
 * applied.
 */
const removeEffect = (source: ClusterSource): Effect<Self> => ({
  name: `remove-${source.name}`,
  phase: 'remove',
  plan: source.plans.remove,
  when: ({ spec }) => source.matches(spec) && spec.deletionPolicy === 'Delete',
  input: (self) => ({
    cluster: self.metadata.name,
    ...source.planInput(self.spec),
    sshKey: self.spec.sshKeySecretRef,
    ...lostMachines(self),
  }),
  timeoutSeconds: HOUR_SECONDS,
  maxAttempts: ({ spec }) => spec.maxAttempts,
});

/**
 * What the provisioner does on machines for a Cluster: one effect per source and phase, of which `when`
 * selects at most one.
 *
 * The input is the desired state. The state Secret records which nodes a cluster had before, and so which
 * must be cleaned when they leave the spec: status in an input would make each success look like a change.
 */
const clusterEffects: readonly Effect<Self>[] = [...sources.map(provisionEffect), ...sources.map(removeEffect)];

/**
 * A Kubernetes cluster that is created and removed by RKE, or installed as RKE2 or K3s on machines over SSH.
 *
 * Its one child is the Kubeconfig, rendered once there is a kubeconfig. The effects write the Secrets with
 * the state and the kubeconfig, with an owner reference that is not a controller's, so that they are deleted
 * with the Cluster. They are not among `owns`, which would grant every Secret in the cluster: the provisioner
 * is granted the Secrets of certain namespaces.
 */
export const Cluster = defineKind({
  group: 'clusterprovisioner.rke.io',
  version: 'v1alpha1',
  kind: 'Cluster',
  plural: 'clusters',
  scope: 'Cluster',
  description: 'A Kubernetes cluster, made and taken down by RKE, or installed as RKE2 or K3s on machines over SSH.',
  spec: clusterSpec,
  status: clusterStatus,
  conditionTypes: [{ type: 'Provisioned', description: 'What this generation asks for was applied to every node.' }],
  lastUpdateTime: true,
  columns: [
    { name: 'Distribution', type: 'string', jsonPath: '.spec.distribution' },
    { name: 'Version', type: 'string', jsonPath: '.spec.version' },
    { name: 'Config', type: 'string', jsonPath: '.spec.configPath', priority: 1 },
    { name: 'Attempts', type: 'integer', jsonPath: '.status.attempts', priority: 1 },
    {
      name: 'Provisioned',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Provisioned")].status',
      description: 'Whether what is wanted was applied to every node.',
    },
    {
      name: 'Reason',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
      description: 'Why it is ready or not.',
    },
  ],
  // How a cluster was created decides how it is removed.
  rules: [
    cel(
      'has(self.spec.nodes) == has(oldSelf.spec.nodes)',
      'a Cluster of nodes cannot become one of a cluster.yml, nor the reverse: make a new Cluster',
    ),
  ],
  // The name is the value of a label, part of the names of Secrets, and part of paths on the machines.
  names: { format: 'dns-subdomain', maxLength: 63 },
  // A domain and a name, as the API requires for finalizers. The removal runs before it is dropped.
  finalizer: { name: 'clusterprovisioner.rke.io/cluster', propagation: 'Foreground' },
  owns: [Kubeconfig.type],
  reads: clusterReads,
  effects: clusterEffects,
  samples: [{ name: 'clusteraws', labels: { rke: 'true' }, spec: { configPath: 'config/rkespec/cluster_aws.yml' } }],
  children(scope, self) {
    const secretRef = self.status?.kubeconfigRef;
    if (secretRef === undefined) return;
    const { name } = self.metadata;
    new CustomResource(scope, 'kubeconfig', { kind: Kubeconfig, metadata: { name }, spec: { secretRef } });
  },
});
export type Cluster = KindObject<typeof Cluster>;
