import type { Problem } from '../../constructs';
import { nameProblem } from '../../constructs/kube/names';
import { isDeferred, nodeLabel, replaceOutputs, type NodeArgs, type RemoteClusterArgs } from './args';

/** Problems with the arguments themselves, besides those that the schema and the plans find. */
export function argumentProblems(args: RemoteClusterArgs): readonly Problem[] {
  return [
    ...deferredProblems(args),
    ...(args.hostKeyChecking === 'skip-insecure' ? [] : unpinnedHosts(args).map(missingHostKeyProblem)),
    ...componentProblems(args),
  ];
}

/** The arguments that {@link componentProblems} reads. */
export type ComponentOnlyArgs = Pick<
  RemoteClusterArgs,
  'dialAttempts' | 'distribution' | 'lost' | 'nodes' | 'removable' | 'sshKeyPassphrase'
>;

/** Problems with the arguments that the schema of a Cluster does not check. */
export function componentProblems(args: ComponentOnlyArgs): readonly Problem[] {
  return [
    ...labelProblems(args.nodes),
    ...machineReferenceProblems(args, 'removable'),
    ...machineReferenceProblems(args, 'lost'),
    ...keyProblems(args),
  ];
}

/**
 * The fields that may be Outputs. All others decide which tasks there are, so they must be known for a plan.
 */
const DEFERRABLE_PATHS = [
  /^nodes\[\d+\]\.(address|internalAddress|hostKey)$/,
  /^nodes\[\d+\]\.bastion\.(address|hostKey|sshKey)$/,
  /^options\.registrationAddress$/,
  /^options\.tlsSans\[\d+\]$/,
];

function deferredProblems({ nodes, options }: RemoteClusterArgs): readonly Problem[] {
  const paths: string[] = [];
  replaceOutputs({ nodes, options }, '', (path) => paths.push(path));
  return paths
    .filter((path) => !DEFERRABLE_PATHS.some((allowed) => allowed.test(path)))
    .map((path) => ({ path, message: 'cannot be an Output: which tasks there are depends on it; give a plain value' }));
}

function labelProblems(nodes: readonly NodeArgs[]): readonly Problem[] {
  return nodes.flatMap((node, i): Problem[] => {
    const { name, address } = node;
    const path = `nodes[${i}].name`;
    if (name === undefined && isDeferred(address)) {
      return [{ path, message: 'is required, because the address is an Output: the resources are named by it' }];
    }
    const problem = name === undefined ? undefined : nameProblem(name, { format: 'dns-label' });
    if (problem !== undefined) return [{ path, message: problem }];
    return ambiguousNameProblems(nodes, node, i).map((message) => ({ path, message }));
  });
}

/** A machine's label must be unique, in Pulumi's state and wherever machines are given by name or address. */
function ambiguousNameProblems(nodes: readonly NodeArgs[], { name, address }: NodeArgs, i: number): readonly string[] {
  const find = (means: (other: NodeArgs, j: number) => boolean): number =>
    nodes.findIndex((other, j) => j !== i && means(other, j));
  if (name === undefined) {
    // The schema reports two nodes without names that have the same address.
    const named = find((other, j) => j < i && other.name === address);
    return named < 0
      ? []
      : [`"${nodes[named]?.name ?? ''}", the address, is also the name of nodes[${named}]; each node needs its own`];
  }
  const same = find((other, j) => j < i && nodeLabel(other) === name);
  if (same >= 0) return [`"${name}" is also that of nodes[${same}]; each node needs its own`];
  const addressed = find((other) => other.name !== undefined && other.address === name);
  return addressed < 0
    ? []
    : [`"${name}" is also the address of nodes[${addressed}]; each node needs a name of its own`];
}

/** A machine without a host key, whose identity cannot be checked. */
export interface UnpinnedHost {
  readonly path: string;
  /** Its name for the user. */
  readonly machine: string;
  readonly port: number;
}

/** The machines without a host key, bastions included. */
export function unpinnedHosts({ nodes }: Pick<RemoteClusterArgs, 'nodes'>): readonly UnpinnedHost[] {
  return nodes.flatMap((node, i) => {
    const { hostKey, bastion, port = 22 } = node;
    const machine = nodeLabel(node) ?? `nodes[${i}]`;
    const own = hostKey === undefined ? [{ path: `nodes[${i}].hostKey`, machine, port }] : [];
    if (bastion === undefined || bastion.hostKey !== undefined) return own;
    const address = typeof bastion.address === 'string' ? bastion.address : `the bastion of ${machine}`;
    return [...own, { path: `nodes[${i}].bastion.hostKey`, machine: address, port: bastion.port ?? 22 }];
  });
}

const missingHostKeyProblem = ({ path, machine, port }: UnpinnedHost): Problem => ({
  path,
  message:
    `${machine} must prove that it is itself: give the key that "ssh-keyscan -t ed25519 -p ${port} ${machine}" prints behind the host, after ` +
    "comparing it with /etc/ssh/ssh_host_ed25519_key.pub on the machine, or set hostKeyChecking: 'skip-insecure'",
});

function machineReferenceProblems(args: ComponentOnlyArgs, field: 'lost' | 'removable'): readonly Problem[] {
  const known = new Set(args.nodes.flatMap((node) => [nodeLabel(node), node.address]));
  return (args[field] ?? []).flatMap((machine, i) =>
    known.has(machine)
      ? []
      : [
          {
            path: `${field}[${i}]`,
            message: `"${machine}" is none of the nodes; take it out of here once it is out of nodes`,
          },
        ],
  );
}

function keyProblems({ distribution, sshKeyPassphrase, dialAttempts = 1 }: ComponentOnlyArgs): readonly Problem[] {
  const problems: Problem[] = [];
  if (distribution === 'rke' && sshKeyPassphrase !== undefined) {
    const message = 'cannot be used with rke, which reads the key itself: give a key without a passphrase';
    problems.push({ path: 'sshKeyPassphrase', message });
  }
  if (!Number.isInteger(dialAttempts) || dialAttempts < 1) {
    problems.push({ path: 'dialAttempts', message: `${dialAttempts} must be an integer of at least 1` });
  }
  return problems;
}
