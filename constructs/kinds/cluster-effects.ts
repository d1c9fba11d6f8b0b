import type { Effect, InputReader } from '../core/effects';
import { LOST_MACHINES_ANNOTATION } from '../core/envelope';
import type { TypedObject } from '../core/kind';
import { owned } from '../core/owned';
import type { ObjectKeyRef, Read } from '../core/reads';
import type { clusterSpec } from './cluster-spec';
import type { clusterStatus } from './cluster-status';

type Self = TypedObject<typeof clusterSpec, typeof clusterStatus>;
type Spec = Self['spec'];

const HOUR_SECONDS = 3600;

/** Secrets with which machines are reached. A new key alone changes nothing on them, so no input has its digest. */
function sshKeys({ sshKeySecretRef, nodes = [] }: Spec): readonly ObjectKeyRef[] {
  return [sshKeySecretRef, ...nodes.map(({ bastion }) => bastion?.sshKeySecretRef)].filter((ref) => ref !== undefined);
}

const pair = (
  ref: { readonly namespace: string; readonly name: string } | undefined,
  first: string,
  second: string,
): readonly (ObjectKeyRef | undefined)[] => (ref === undefined ? [] : [first, second].map((key) => ({ ...ref, key })));

/** Secrets whose values end up in configuration files on the machines. */
function credentials({ rke, rke2, k3s }: Spec): readonly ObjectKeyRef[] {
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

/** What a Cluster looks at. */
export const clusterReads: readonly Read<Self>[] = [
  {
    name: 'config',
    type: owned.Secret,
    refs: ({ spec }) => (spec.configSecretRef === undefined ? [] : [spec.configSecretRef]),
  },
  { name: 'ssh-key', type: owned.Secret, refs: ({ spec }) => sshKeys(spec) },
  { name: 'credentials', type: owned.Secret, refs: ({ spec }) => credentials(spec) },
];

/** Machines that a person says are gone for good. No field when there are none, so that inputs are as they were without it. */
function lostMachines({ metadata }: Self): { readonly lost?: readonly string[] } {
  const lost = (metadata.annotations?.[LOST_MACHINES_ANNOTATION] ?? '').split(/[\s,]+/).filter((word) => word !== '');
  return lost.length === 0 ? {} : { lost: [...new Set(lost)].sort() };
}

/** A way to say what the cluster is, with the plans that serve it. */
interface Source {
  /** End of the effects' names. */
  readonly name: string;
  readonly plans: { readonly up: string; readonly remove: string };
  readonly given: (spec: Spec) => boolean;
  /** What tells the plan which cluster it is. */
  readonly what: (spec: Spec) => Readonly<Record<string, unknown>>;
  /** What stands elsewhere and decides too. */
  readonly digests: (spec: Spec, read: InputReader) => Readonly<Record<string, unknown>>;
  readonly files?: (spec: Spec) => readonly string[];
}

const RKE_PLANS = { up: 'rke.up', remove: 'rke.remove' };

const configPath: Source = {
  name: 'config-path',
  plans: RKE_PLANS,
  given: (spec) => spec.configPath !== undefined,
  what: (spec) => ({ file: spec.configPath, hostKeys: spec.hostKeys }),
  digests: ({ configPath: path }, read) => (path === undefined ? {} : { config: read.fileDigest(path) }),
  files: ({ configPath: path }) => (path === undefined ? [] : [path]),
};

const configSecret: Source = {
  name: 'config-secret',
  plans: RKE_PLANS,
  given: (spec) => spec.configSecretRef !== undefined,
  what: (spec) => ({ secret: spec.configSecretRef, hostKeys: spec.hostKeys }),
  digests: ({ configSecretRef: ref }, read) => (ref === undefined ? {} : { config: read.digest(owned.Secret, ref) }),
};

const typed = (distribution: 'rke' | 'rke2' | 'k3s'): Source => ({
  name: distribution,
  plans: { up: `${distribution}.up`, remove: `${distribution}.remove` },
  given: (spec) => spec.distribution === distribution,
  what: (spec) => ({
    nodes: spec.nodes,
    version: spec.version,
    options: spec[distribution] ?? {},
    installer: spec.installer,
  }),
  digests: (spec, read) =>
    Object.fromEntries(
      credentials(spec).map((ref) => [[ref.namespace, ref.name, ref.key].join('/'), read.digest(owned.Secret, ref)]),
    ),
});

const sources = [configPath, configSecret, typed('rke'), typed('rke2'), typed('k3s')];

const provision = (source: Source): Effect<Self> => ({
  name: `provision-${source.name}`,
  phase: 'apply',
  plan: source.plans.up,
  when: ({ spec }) => source.given(spec),
  input: (self, read) => ({
    cluster: self.metadata.name,
    ...source.what(self.spec),
    sshKey: self.spec.sshKeySecretRef,
    digests: source.digests(self.spec, read),
    ...lostMachines(self),
  }),
  ...(source.files === undefined ? {} : { files: ({ spec }: Self) => source.files?.(spec) ?? [] }),
  timeoutSeconds: 4 * HOUR_SECONDS,
  maxAttempts: ({ spec }) => spec.maxAttempts,
  condition: 'Provisioned',
});

/** Nothing here asks for a file or a Secret: what was applied stands in the state Secret, and they may be gone. */
const remove = (source: Source): Effect<Self> => ({
  name: `remove-${source.name}`,
  phase: 'remove',
  plan: source.plans.remove,
  when: ({ spec }) => source.given(spec) && spec.deletionPolicy === 'Delete',
  input: (self) => ({
    cluster: self.metadata.name,
    ...source.what(self.spec),
    sshKey: self.spec.sshKeySecretRef,
    ...lostMachines(self),
  }),
  timeoutSeconds: HOUR_SECONDS,
  maxAttempts: ({ spec }) => spec.maxAttempts,
});

/**
 * What is done on machines for a Cluster: one effect per source and phase, of which `when` leaves at most one.
 *
 * The input tells the plan what is wanted. Which nodes a cluster had before, and so which must be cleaned when they leave the spec,
 * stands in the state Secret: status in an input would make each success look like a change.
 */
export const clusterEffects: readonly Effect<Self>[] = [...sources.map(provision), ...sources.map(remove)];
