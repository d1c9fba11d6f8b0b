import { createHash } from 'node:crypto';
import type * as pulumi from '@pulumi/pulumi';
import { Cluster, InvalidObjectError, validateObject, type Problem } from '../../../constructs';
import type { ObjectKeyRef } from '../../../constructs/kind/reads';
import { clusterInput, clusterProblems, type ClusterInput } from '../../../provision';
import type { NodeArgs, RemoteClusterArgs } from './args';

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
  const label = (first && labelOf(first)) ?? '';
  // An IPv6 address is no name of a Secret.
  return { ...SSH_KEY, name: `bastion-${createHash('sha256').update(label).digest('hex').slice(0, 16)}` };
}

/** What a machine's resources are named by. Undefined when it has neither a name nor an address that is known now. */
export function labelOf({ name, address }: NodeArgs): string | undefined {
  return name ?? (typeof address === 'string' ? address : undefined);
}

/** The arguments that say what the cluster is, in the fields of a Cluster's spec, without secrets. */
export interface Description {
  readonly nodes: readonly object[];
  readonly options: object;
}

/** Of the arguments, what a plan is made of. Outputs still stand in it. */
export function described(args: RemoteClusterArgs): Description {
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
export type Checked = { readonly input: ClusterInput } | { readonly problems: readonly Problem[] };

/** Checks a description against the schema of a Cluster, and then whether such a cluster can be. */
export function checkedInput(name: string, args: RemoteClusterArgs, { nodes, options }: Description): Checked {
  const { distribution, version, installer, clusterName = name } = args;
  const { apiVersion, kind } = Cluster;
  const spec = { distribution, version, nodes, sshKeySecretRef: SSH_KEY, [distribution]: options };
  try {
    const valid = validateObject(Cluster, { apiVersion, kind, metadata: { name: clusterName }, spec });
    const input = { ...clusterInput(clusterName, valid.spec), ...(installer === undefined ? {} : { installer }) };
    const problems = clusterProblems(input);
    return problems.length === 0 ? { input } : { problems: ownPaths(problems, distribution) };
  } catch (error) {
    if (!(error instanceof InvalidObjectError)) throw error;
    return { problems: ownPaths(error.problems, distribution) };
  }
}

/** Problems with paths into a Cluster, as ones into the component's arguments. */
export function ownPaths(problems: readonly Problem[], distribution: string): readonly Problem[] {
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
