import { createHash } from 'node:crypto';
import type * as pulumi from '@pulumi/pulumi';
import type { z } from 'zod';
import { Cluster, InvalidObjectError, validateObject, type Problem } from '../../constructs';
import type { ObjectKeyRef } from '../../constructs/kind/reads';
import type { nodes } from '../../constructs/kinds/cluster-node';
import type { k3sOptions, rke2Options, rkeOptions } from '../../constructs/kinds/cluster-options';
import { isDeferred } from '../bridge';
import { clusterInput, clusterProblems, type ClusterInput, type InstallerSource } from '../../provision';

type PlainNode = z.input<typeof nodes>[number];
type PlainBastion = NonNullable<PlainNode['bastion']>;

/** A bastion through which SSH reaches a machine. */
export interface BastionArgs extends Omit<PlainBastion, 'address' | 'hostKey' | 'sshKeySecretRef'> {
  /** Host name or IP address. */
  readonly address: pulumi.Input<string>;
  /** The bastion's public host key, `type base64`, as `ssh-keyscan` prints it after the host. */
  readonly hostKey?: pulumi.Input<string>;
  /** Private key for the bastion, in PEM. @default the cluster's */
  readonly sshKey?: pulumi.Input<string>;
}

/**
 * A machine of the cluster, with the fields of a Cluster's `spec.nodes`. Values that other resources give may
 * be Outputs.
 */
export interface NodeArgs extends Omit<PlainNode, 'address' | 'bastion' | 'hostKey' | 'internalAddress'> {
  /**
   * Names the machine in Pulumi's state, as a DNS label. Its resources have this name in theirs, so it must
   * not change while the machine is in the cluster. Required when `address` is an Output.
   * @default the address
   */
  readonly name?: string;
  /** Host name or IP address at which SSH reaches the machine. */
  readonly address: pulumi.Input<string>;
  /** IP address at which the nodes reach each other. @default the address */
  readonly internalAddress?: pulumi.Input<string>;
  /** The machine's public host key, `type base64`, as `ssh-keyscan` prints it after the host. */
  readonly hostKey?: pulumi.Input<string>;
  /** @default none: the machine is reached directly */
  readonly bastion?: BastionArgs;
}

/**
 * Options of RKE2 or K3s, as in a Cluster's spec. The names and addresses of a load balancer may be Outputs.
 */
type ServerOptions<T> = Omit<T, 'registrationAddress' | 'tlsSans'> & {
  /** Name or address, in front of all servers, at which nodes join. @default the first server */
  readonly registrationAddress?: pulumi.Input<string>;
  /** More names and addresses in the API server's certificate. */
  readonly tlsSans?: readonly pulumi.Input<string>[];
};

type RkeOptionsArgs = Omit<z.input<typeof rkeOptions>, 'tlsSans'> & {
  /** More names and addresses in the API server's certificate. */
  readonly tlsSans?: readonly pulumi.Input<string>[];
};

/** The distribution with its own options, as in a Cluster's spec. */
export type DistributionArgs =
  | { readonly distribution: 'rke'; readonly options?: RkeOptionsArgs }
  | { readonly distribution: 'rke2'; readonly options?: ServerOptions<z.input<typeof rke2Options>> }
  | { readonly distribution: 'k3s'; readonly options?: ServerOptions<z.input<typeof k3sOptions>> };

interface CommonArgs {
  /** Version to install, as the distribution names it: `v1.30.4+rke2r1`. A minor version at a time. */
  readonly version: string;
  /** The machines. The first with the role controlplane creates the cluster, the others join it. */
  readonly nodes: readonly NodeArgs[];
  /** Private SSH key for the machines, in PEM. Kept as a secret. A new key alone changes nothing on the machines. */
  readonly sshKey: pulumi.Input<string>;
  /** Passphrase of `sshKey`. Not for RKE, which reads the key itself. @default the key has none */
  readonly sshKeyPassphrase?: pulumi.Input<string>;
  /** Name of the cluster in the files on the machines and in the kubeconfig. @default the component's name */
  readonly clusterName?: string;
  /**
   * Values for the options' fields that end in `SecretRef`: by `namespace/name` of the reference, then by
   * key. They are stored as secrets even if they are given as plain values.
   * @default none
   */
  readonly secrets?: Readonly<Record<string, Readonly<Record<string, pulumi.Input<string>>>>>;
  /** Where the installation script comes from. Only for RKE2 and K3s. @default the distribution's own */
  readonly installer?: InstallerSource;
  /**
   * `pinned`: every machine must prove that it has its `hostKey`. `skip-insecure`: a machine without
   * `hostKey` is trusted unchecked, so an attacker on the network in between can take it over and read every
   * secret that is sent to it; each run warns of this.
   * @default 'pinned'
   */
  readonly hostKeyChecking?: 'pinned' | 'skip-insecure';
  /**
   * Attempts to reach a machine before an update fails. A machine that is still booting needs more.
   * @default 10
   */
  readonly dialAttempts?: number;
  /**
   * Do not remove anything from a machine: while this is set, neither the cluster nor one of its machines can
   * be destroyed. To destroy the cluster, set it to false, run `pulumi up`, then `pulumi destroy`.
   * @default true
   */
  readonly protect?: boolean;
  /**
   * Machines, by name or address, that may be removed though the others are protected: name one here, run
   * `pulumi up`, remove it from `nodes`, run `pulumi up` again.
   * @default none
   */
  readonly removable?: readonly string[];
  /**
   * Machines, by name or address, that are lost for good: nothing runs on them any more, neither changes nor
   * clean-up. Name one here, run `pulumi up`, remove it from `nodes` and from here, run `pulumi up` again.
   * @default none
   */
  readonly lost?: readonly string[];
}

/** Arguments of a `RemoteCluster`. */
export type RemoteClusterArgs = CommonArgs & DistributionArgs;

/**
 * Namespace of the references to values that are arguments of their own and not in `secrets`. No such
 * namespace exists.
 */
const OWN_NAMESPACE = 'kindred-remote-cluster';

/** Reference to the SSH key of all machines. */
export const SSH_KEY: ObjectKeyRef = { namespace: OWN_NAMESPACE, name: 'ssh', key: 'ssh-privatekey' };

/**
 * Reference to a bastion's own key. It is named by the first node with that key, since RKE reaches all nodes
 * through one bastion with one key. Two Outputs count as two keys, even if their values are the same.
 */
function bastionKey(nodes: readonly NodeArgs[], sshKey: pulumi.Input<string>): ObjectKeyRef {
  const first = nodes.find(({ bastion }) => bastion?.sshKey === sshKey);
  const label = (first && nodeLabel(first)) ?? '';
  // Hashed, because an IPv6 address is no valid name of a Secret.
  return { ...SSH_KEY, name: `bastion-${createHash('sha256').update(label).digest('hex').slice(0, 16)}` };
}

/**
 * The name of a machine in its resources' names. Undefined if it has neither a name nor an address that is
 * known now.
 */
export function nodeLabel({ name, address }: NodeArgs): string | undefined {
  return name ?? (typeof address === 'string' ? address : undefined);
}

/** The arguments that describe the cluster, as fields of a Cluster's spec, without secrets. */
export interface ClusterDescription {
  readonly nodes: readonly object[];
  readonly options: object;
}

/** The arguments from which a plan is computed, with the Outputs still in them. */
export function describeCluster(args: RemoteClusterArgs): ClusterDescription {
  const nodes = args.nodes.map((node) => {
    const { bastion, ...rest } = withoutName(node);
    if (bastion === undefined) return rest;
    const { sshKey, ...way } = bastion;
    const key = sshKey === undefined ? {} : { sshKeySecretRef: bastionKey(args.nodes, sshKey) };
    return { ...rest, bastion: { ...way, ...key } };
  });
  return { nodes, options: args.options ?? {} };
}

/** Drops the name, which only the component has: a Cluster's nodes have none. */
function withoutName(node: NodeArgs): Omit<NodeArgs, 'name'> {
  const rest: { name?: string } & Omit<NodeArgs, 'name'> = { ...node };
  delete rest.name;
  return rest;
}

/** The input of the plans, or the problems with it. */
type Checked = { readonly input: ClusterInput } | { readonly problems: readonly Problem[] };

/** Checks a description against the schema of a Cluster, then whether such a cluster is possible. */
export function validateInput(name: string, args: RemoteClusterArgs, { nodes, options }: ClusterDescription): Checked {
  const { distribution, version, installer, clusterName = name } = args;
  const { apiVersion, kind } = Cluster;
  const spec = { distribution, version, nodes, sshKeySecretRef: SSH_KEY, [distribution]: options };
  try {
    const valid = validateObject(Cluster, { apiVersion, kind, metadata: { name: clusterName }, spec });
    // The plans check it themselves. A Cluster's schema is narrower: it takes no SHA-256 in capital letters.
    const input = { ...clusterInput(clusterName, valid.spec), ...(installer === undefined ? {} : { installer }) };
    const problems = clusterProblems(input);
    return problems.length === 0 ? { input } : { problems: toArgumentPaths(problems, distribution) };
  } catch (error) {
    if (!(error instanceof InvalidObjectError)) throw error;
    return { problems: toArgumentPaths(error.problems, distribution) };
  }
}

/** Translates the paths of problems from a Cluster's to the component's arguments. */
function toArgumentPaths(problems: readonly Problem[], distribution: string): readonly Problem[] {
  const options = new RegExp(`^${distribution}(?=$|[.[])`);
  return problems.map((problem) => ({
    ...problem,
    path:
      problem.path === 'metadata.name'
        ? 'clusterName'
        : problem.path.replace(/^spec\.?/, '').replace(options, 'options'),
  }));
}

/** The value of a reference as it was given; undefined if it was not. */
export function givenSecret(args: RemoteClusterArgs, ref: ObjectKeyRef): pulumi.Input<string> | undefined {
  const { namespace = '', name, key } = ref;
  const isRef = (own: ObjectKeyRef): boolean => own.namespace === namespace && own.name === name && own.key === key;
  if (isRef(SSH_KEY)) return args.sshKey;
  const ofBastions = args.nodes.flatMap(({ bastion }) => bastion?.sshKey ?? []);
  const ofBastion = ofBastions.find((sshKey) => isRef(bastionKey(args.nodes, sshKey)));
  return ofBastion ?? args.secrets?.[`${namespace}/${name}`]?.[key];
}

/** All problems as one error. */
export function invalid(name: string, problems: readonly Problem[]): InvalidObjectError {
  return new InvalidObjectError(`RemoteCluster ${name}`, problems);
}

/** A copy of a value in which `stand` replaces each Output, given its path, such as `nodes[0].address`. */
export function replaceOutputs(value: unknown, path: string, stand: (path: string) => unknown): unknown {
  if (isDeferred(value)) return stand(path);
  if (Array.isArray(value)) return value.map((item, i) => replaceOutputs(item, `${path}[${i}]`, stand));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, replaceOutputs(item, path === '' ? key : `${path}.${key}`, stand)]),
  );
}

/** Whether a value contains an Output anywhere. */
export function hasOutputs(value: unknown): boolean {
  let found = false;
  replaceOutputs(value, '', () => (found = true));
  return found;
}
