import { createHash } from 'node:crypto';
import * as pulumi from '@pulumi/pulumi';
import type { z } from 'zod';
import { Cluster, InvalidObjectError, validateObject, type Problem } from '../../constructs';
import type { ObjectKeyRef } from '../../constructs/kind/reads';
import type { nodes } from '../../constructs/kinds/cluster-node';
import type { k3sOptions, rke2Options, rkeOptions } from '../../constructs/kinds/cluster-options';
import { clusterInput, clusterProblems, type ClusterInput, type InstallerSource } from '../../provision';

type PlainNode = z.input<typeof nodes>[number];
type PlainBastion = NonNullable<PlainNode['bastion']>;

/** A machine to go through. */
export interface BastionArgs extends Omit<PlainBastion, 'address' | 'hostKey' | 'sshKeySecretRef'> {
  /** Host name or IP address. */
  readonly address: pulumi.Input<string>;
  /** The bastion's public host key, `type base64`, as `ssh-keyscan` prints it behind the host. */
  readonly hostKey?: pulumi.Input<string>;
  /** Private key for the bastion, in PEM. @default the cluster's */
  readonly sshKey?: pulumi.Input<string>;
}

/** A machine of the cluster. The fields are those of a Cluster's `spec.nodes`; what a program only learns while it runs may be an Output. */
export interface NodeArgs extends Omit<PlainNode, 'address' | 'bastion' | 'hostKey' | 'internalAddress'> {
  /**
   * Names the machine in Pulumi's state, as a DNS label. Its resources are named by it, so it must stay the same as long as the machine does.
   * Required when `address` is an Output.
   * @default the address
   */
  readonly name?: string;
  /** Host name or IP address at which SSH reaches the machine. */
  readonly address: pulumi.Input<string>;
  /** IP address at which the nodes reach each other. @default the address */
  readonly internalAddress?: pulumi.Input<string>;
  /** The machine's public host key, `type base64`, as `ssh-keyscan` prints it behind the host. */
  readonly hostKey?: pulumi.Input<string>;
  /** @default none: the machine is reached directly */
  readonly bastion?: BastionArgs;
}

/** Options of RKE2 or K3s: those of a Cluster's spec, where what a load balancer was given may be an Output. */
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
  /** The machines. The first with the role controlplane makes the cluster, the others join it. */
  readonly nodes: readonly NodeArgs[];
  /** Private SSH key for the machines, in PEM. Kept as a secret. A new key alone changes nothing on the machines. */
  readonly sshKey: pulumi.Input<string>;
  /** Passphrase of `sshKey`. Not for RKE, which reads the key itself. @default the key has none */
  readonly sshKeyPassphrase?: pulumi.Input<string>;
  /** Name of the cluster, as it stands in files on the machines and in the kubeconfig. @default the component's name */
  readonly clusterName?: string;
  /**
   * Values for the options' fields that end in `SecretRef`: by `namespace/name` of the reference, then by key. They are kept as secrets, whether
   * they were given as such or not.
   * @default none
   */
  readonly secrets?: Readonly<Record<string, Readonly<Record<string, pulumi.Input<string>>>>>;
  /** Where the installation script comes from. Only for RKE2 and K3s. @default the distribution's own */
  readonly installer?: InstallerSource;
  /**
   * `pinned`: every machine must prove to hold its `hostKey`. `skip-insecure`: a machine without `hostKey` is trusted unseen, so whoever sits on
   * the network in between can take it over, and read every secret that goes there; a warning says so at each run.
   * @default 'pinned'
   */
  readonly hostKeyChecking?: 'pinned' | 'skip-insecure';
  /** How often a machine is tried before an update gives up. A machine that just boots needs more. @default 10 */
  readonly dialAttempts?: number;
  /**
   * Refuse to take anything off a machine: neither the cluster nor a machine of it can be destroyed while this is set. To destroy the cluster,
   * set it to false, run `pulumi up`, then `pulumi destroy`.
   * @default true
   */
  readonly protect?: boolean;
  /**
   * Machines, by name or address, that may leave though the rest is protected: name one here, run `pulumi up`, take it out of `nodes`, run
   * `pulumi up` again.
   * @default none
   */
  readonly removable?: readonly string[];
  /**
   * Machines, by name or address, that are gone for ever: nothing is run on them any more, neither to change them nor to clean them up. Name one
   * here, run `pulumi up`, take it out of `nodes` and of here, run `pulumi up` again.
   * @default none
   */
  readonly lost?: readonly string[];
}

/** What a {@link RemoteCluster} is made of. */
export type RemoteClusterArgs = CommonArgs & DistributionArgs;

/** Where the values are "looked up" that the component was given itself, rather than through `secrets`. */
const OWN_NAMESPACE = 'kindred-remote-cluster';

/** The key of all machines. */
export const SSH_KEY: ObjectKeyRef = { namespace: OWN_NAMESPACE, name: 'ssh', key: 'ssh-privatekey' };

/**
 * Where a bastion's own key is "looked up": under the first of the nodes that were given it, since RKE goes to all nodes through one bastion,
 * with one key. Two Outputs are two keys, whatever they turn out to be.
 */
export function bastionKey(nodes: readonly NodeArgs[], sshKey: pulumi.Input<string>): ObjectKeyRef {
  const first = nodes.find(({ bastion }) => bastion?.sshKey === sshKey);
  const label = (first && nodeLabel(first)) ?? '';
  // An IPv6 address is no name of a Secret.
  return { ...SSH_KEY, name: `bastion-${createHash('sha256').update(label).digest('hex').slice(0, 16)}` };
}

/** What a machine's resources are named by. Undefined when it has neither a name nor an address that is known now. */
export function nodeLabel({ name, address }: NodeArgs): string | undefined {
  return name ?? (typeof address === 'string' ? address : undefined);
}

/** The arguments that say what the cluster is, in the fields of a Cluster's spec, without secrets. */
export interface ClusterDescription {
  readonly nodes: readonly object[];
  readonly options: object;
}

/** Of the arguments, what a plan is made of. Outputs still stand in it. */
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

/** The name is the component's own: a Cluster's nodes have none. */
function withoutName(node: NodeArgs): Omit<NodeArgs, 'name'> {
  const rest: { name?: string } & Omit<NodeArgs, 'name'> = { ...node };
  delete rest.name;
  return rest;
}

/** The input of the plans, or why there is none. */
type Checked = { readonly input: ClusterInput } | { readonly problems: readonly Problem[] };

/** Checks a description against the schema of a Cluster, and then whether such a cluster can be. */
export function validateInput(name: string, args: RemoteClusterArgs, { nodes, options }: ClusterDescription): Checked {
  const { distribution, version, installer, clusterName = name } = args;
  const { apiVersion, kind } = Cluster;
  const spec = { distribution, version, nodes, sshKeySecretRef: SSH_KEY, [distribution]: options };
  try {
    const valid = validateObject(Cluster, { apiVersion, kind, metadata: { name: clusterName }, spec });
    const input = { ...clusterInput(clusterName, valid.spec), ...(installer === undefined ? {} : { installer }) };
    const problems = clusterProblems(input);
    return problems.length === 0 ? { input } : { problems: toArgumentPaths(problems, distribution) };
  } catch (error) {
    if (!(error instanceof InvalidObjectError)) throw error;
    return { problems: toArgumentPaths(error.problems, distribution) };
  }
}

/** Problems with paths into a Cluster, as ones into the component's arguments. */
export function toArgumentPaths(problems: readonly Problem[], distribution: string): readonly Problem[] {
  const options = new RegExp(`^${distribution}(?=$|[.[])`);
  return problems.map(({ path, message }) => ({
    path: path === 'metadata.name' ? 'clusterName' : path.replace(/^spec\.?/, '').replace(options, 'options'),
    message,
  }));
}

/** All that is wrong, as one error. */
export function invalid(name: string, problems: readonly Problem[]): InvalidObjectError {
  return new InvalidObjectError(`RemoteCluster ${name}`, problems);
}

/** Whether a value is only known once something else stands. */
export function isDeferred(value: unknown): boolean {
  return pulumi.Output.isInstance(value) || value instanceof Promise;
}

/** A value in which each Output is replaced by what `stand` gives for its path, such as `nodes[0].address`. */
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

/** Whether an Output stands anywhere in a value. */
export function hasOutputs(value: unknown): boolean {
  let found = false;
  replaceOutputs(value, '', () => (found = true));
  return found;
}
