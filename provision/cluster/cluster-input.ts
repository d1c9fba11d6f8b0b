import type { z } from 'zod';
import type { ObjectKeyRef } from '../../constructs/kind/reads';
import type { nodes } from '../../constructs/kinds/cluster-node';
import { k3sOptions, rke2Options, rkeOptions } from '../../constructs/kinds/cluster-options';
import type { Machine } from '../task/task';

/** The input of a plan. Every string has passed the schemas of the kind Cluster. */
export type ClusterInput = RkeInput | Rke2Input | K3sInput;

/** A cluster of RKE. */
export interface RkeInput extends CommonClusterInput {
  readonly distribution: 'rke';
  readonly options: RkeOptions;
}

/** A cluster of RKE2. */
export interface Rke2Input extends CommonClusterInput {
  readonly distribution: 'rke2';
  readonly options: Rke2Options;
}

/** A cluster of K3s. */
export interface K3sInput extends CommonClusterInput {
  readonly distribution: 'k3s';
  readonly options: K3sOptions;
}

interface CommonClusterInput {
  /** Name of the Cluster: a DNS subdomain of up to 63 characters. */
  readonly name: string;
  /** In the format of the distribution: `v1.30.4+rke2r1`. */
  readonly version: string;
  readonly nodes: readonly Node[];
  /** Private SSH key for all machines. */
  readonly sshKey: ObjectKeyRef;
  /** Only for RKE2 and K3s. @default the distribution's own installer */
  readonly installer?: InstallerSource;
}

/** A machine of a cluster, as parsed by the schema: with its defaults filled in. */
export type Node = z.output<typeof nodes>[number];

/** What a machine does for its cluster. */
export type NodeRole = Node['roles'][number];

/** The options of RKE, with defaults filled in. */
export type RkeOptions = z.output<typeof rkeOptions>;
/** The options of RKE2, with defaults filled in. */
export type Rke2Options = z.output<typeof rke2Options>;
/** The options of K3s, with defaults filled in. */
export type K3sOptions = z.output<typeof k3sOptions>;

/**
 * Source of the installation script of RKE2 or K3s, for sites without internet access. At most one of `url`
 * and `path`.
 */
export interface InstallerSource {
  /** @default the distribution's own: https://get.rke2.io or https://get.k3s.io */
  readonly url?: string;
  /** An absolute path on every machine. */
  readonly path?: string;
  /** SHA-256 that the script must have to be run, in hexadecimal. @default not checked */
  readonly sha256?: string;
  /**
   * Directory on every machine with the distribution's own artifacts, for machines without internet: RKE2's
   * `INSTALL_RKE2_ARTIFACT_PATH`. For K3s it contains the executable `k3s`.
   * @default the installer downloads them
   */
  readonly artifacts?: string;
}

/** The fields of a Cluster's spec that {@link clusterInput} reads. */
export interface TypedClusterSpec {
  readonly distribution?: ClusterInput['distribution'] | undefined;
  readonly version?: string | undefined;
  readonly nodes?: readonly Node[] | undefined;
  readonly rke?: RkeOptions | undefined;
  readonly rke2?: Rke2Options | undefined;
  readonly k3s?: K3sOptions | undefined;
  readonly sshKeySecretRef?: ObjectKeyRef | undefined;
  readonly installer?: InstallerSource | undefined;
}

/**
 * The input of a plan for a valid spec: with the distribution's options, or their defaults.
 *
 * @throws TypeError when the spec has no nodes, that is, when a cluster.yml describes the cluster
 */
export function clusterInput(name: string, spec: TypedClusterSpec): ClusterInput {
  const { distribution, version, nodes, sshKeySecretRef: sshKey, installer } = spec;
  if (distribution === undefined || version === undefined || nodes === undefined || sshKey === undefined) {
    throw new TypeError(
      `Cluster ${name}: only one with nodes, distribution, version and sshKeySecretRef has typed options`,
    );
  }
  const common = { name, version, nodes, sshKey, ...(installer === undefined ? {} : { installer }) };
  switch (distribution) {
    case 'rke':
      return { ...common, distribution, options: spec.rke ?? rkeOptions.parse({}) };
    case 'rke2':
      return { ...common, distribution, options: spec.rke2 ?? rke2Options.parse({}) };
    case 'k3s':
      return { ...common, distribution, options: spec.k3s ?? k3sOptions.parse({}) };
  }
}

/**
 * The options that cannot change once a cluster exists, by path below `options`; lists joined by commas, `''`
 * = not set.
 */
export function immutableOptions({ distribution, options }: ClusterInput): ReadonlyMap<string, string> {
  return new Map(IMMUTABLE_OPTIONS[distribution].map((path) => [path, valueAt(options, path)]));
}

/** Immutable options by distribution, as paths below `options`. */
const IMMUTABLE_OPTIONS = {
  rke: ['clusterCidr', 'serviceCidr', 'clusterDomain', 'network.plugin'],
  rke2: ['clusterCidrs', 'serviceCidrs', 'clusterDomain', 'dataDir', 'cni'],
  k3s: ['clusterCidrs', 'serviceCidrs', 'clusterDomain', 'dataDir', 'flannelBackend', 'datastore.type'],
} as const;

/** Defaults of some of them: setting such a value is the same as setting none. */
const DEFAULTS: Readonly<Record<string, string>> = {
  clusterDomain: 'cluster.local',
  clusterCidr: '10.42.0.0/16',
  serviceCidr: '10.43.0.0/16',
  clusterCidrs: '10.42.0.0/16',
  serviceCidrs: '10.43.0.0/16',
  'network.plugin': 'canal',
  'datastore.type': 'etcd',
};

function valueAt(options: ClusterInput['options'], path: string): string {
  const value = path
    .split('.')
    .reduce<unknown>(
      (at, key) => (typeof at === 'object' && at !== null ? (at as Readonly<Record<string, unknown>>)[key] : undefined),
      options,
    );
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'string' ? value : (DEFAULTS[path] ?? '');
}

/** Where a cluster's objects are kept. */
export function datastoreType(input: ClusterInput): 'etcd' | 'sqlite' | 'external' {
  return input.distribution === 'k3s' ? (input.options.datastore?.type ?? 'etcd') : 'etcd';
}

type Login = Pick<Machine, 'address' | 'hostKey' | 'port' | 'user'>;

/** How to connect to a node's machine. The key is for its bastion too, unless that has one of its own. */
export function machineOf({ bastion, ...node }: Node, sshKey: ObjectKeyRef): Machine {
  const through =
    bastion === undefined ? {} : { bastion: { ...loginOf(bastion), sshKey: bastion.sshKeySecretRef ?? sshKey } };
  return { ...loginOf(node), sshKey, ...through };
}

/** Where a machine is, and as whom to log in. */
export function loginOf({ address, port, user, hostKey }: Login): Login {
  return { address, port, user, ...(hostKey === undefined ? {} : { hostKey }) };
}
