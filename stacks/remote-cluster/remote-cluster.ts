import { Provider } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import type { ObjectKeyRef } from '../../constructs/kind/reads';
import type { Task } from '../../provision';
import { mutableContent } from '../bridge';
import { givenSecret, invalid, nodeLabel, type RemoteClusterArgs } from './args';
import { TaskCommands, commandPackage } from './commands';
import { resolveOutline, servedLabel, type Outline } from './plan';
import { checkedOutline, unpinnedHosts } from './validate';

export type { BastionArgs, DistributionArgs, NodeArgs, RemoteClusterArgs } from './args';

/** A machine of a cluster, with its address known. */
export interface RemoteNode {
  /** Its name in the names of its resources. */
  readonly name: string;
  readonly address: string;
  readonly roles: readonly ('controlplane' | 'etcd' | 'worker')[];
}

/**
 * A Kubernetes cluster on machines that are reached over SSH: RKE, RKE2 or K3s.
 *
 * Guarantees:
 * - All problems with the arguments are reported at once, before anything is registered; only wrong types hide
 *   others. What only the
 *   machines can tell is checked on them before anything is changed.
 * - Each step is a resource of its own, named by the machine and what it does there. Adding or removing a
 *   machine changes other machines' resources only in what they must know about it.
 * - Secrets reach machines over stdin only, and are in the state as secrets only; never in a command line,
 *   environment or log.
 * - The next `pulumi up` continues a run that was interrupted or failed, and what that run did can be
 *   destroyed: see {@link TaskCommands}.
 *
 * Assumptions: the machines run Linux with `sh`, `base64`, `sed` and `tail`; `pulumi` runs where SSH reaches them.
 *
 * Caveats:
 * - A changed SSH key runs each step again, which finds nothing to do. That also proves that the key works.
 * - A machine is identified by its name, or its address if it has no name. Another address under the same
 *   name counts as the same machine.
 * - A Pulumi program cannot read what it applied before. So the machines themselves (RKE2 and K3s) reject a
 *   version that skips a minor or goes back, and a change of an immutable setting: in a check before anything
 *   changes, but not in a preview.
 *
 * Errors: InvalidObjectError, with all problems, from the constructor. The error of a failed step says what
 * failed, where, why, and what to do.
 */
export class RemoteCluster extends pulumi.ComponentResource {
  /** The cluster's kubeconfig, for its fixed address. Secret. */
  readonly kubeconfig: pulumi.Output<string>;
  /** The machines. */
  readonly nodes: pulumi.Output<readonly RemoteNode[]>;
  /** The requested version. */
  readonly version: pulumi.Output<string>;

  private readonly commands: TaskCommands;
  private made: Provider | undefined;

  constructor(
    private readonly clusterName: string,
    args: RemoteClusterArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    const checked = checkedOutline(clusterName, args);
    if ('problems' in checked) throw invalid(clusterName, checked.problems);
    const plan = checked.outline;
    // Fails before anything is registered if the package is missing.
    commandPackage();
    const { distribution, version, options } = args;
    super('kindred:cluster:RemoteCluster', clusterName, { distribution, version, options, nodes: nodesOf(args) }, opts);
    warnUnpinnedHosts(args, this);
    this.commands = new TaskCommands(resolveOutline(clusterName, args, plan), {
      name: clusterName,
      parent: this,
      secret: (ref) => pulumi.secret(known(ref, givenSecret(args, ref))),
      ...(args.sshKeyPassphrase === undefined ? {} : { passphrase: pulumi.secret(args.sshKeyPassphrase) }),
      dialAttempts: args.dialAttempts ?? 10,
      ...protectionRules(args, plan),
    });
    this.kubeconfig = this.commands.output(plan.kubeconfig);
    this.version = pulumi.output(args.version);
    this.nodes = nodesOf(args);
    this.registerOutputs({ kubeconfig: this.kubeconfig, nodes: this.nodes, version: this.version });
  }

  /**
   * A provider for objects on the cluster. It depends on all of the cluster's steps, so that these objects
   * are deleted while the machines still work.
   */
  get provider(): Provider {
    this.made ??= new Provider(
      `${this.clusterName}/provider`,
      {
        kubeconfig: this.kubeconfig,
        // Known from the start and independent of the kubeconfig: otherwise a new certificate would replace
        // everything that is installed. So would `pulumi stack rename`, if it contained the names of project
        // and stack. It need only be unique among the values that this provider has had.
        clusterIdentifier: this.clusterName,
        ...mutableContent,
      },
      { parent: this, dependsOn: [...this.commands.resources] },
    );
    return this.made;
  }
}

/**
 * Fails if a value is missing: with an empty key in its place, SSH would go on and try the keys of an agent.
 */
function known<T>({ namespace = '', name, key }: ObjectKeyRef, value: T | undefined): T {
  if (value === undefined) throw new TypeError(`${namespace}/${name} ${key} is read, and was not checked to be there`);
  return value;
}

/** Which tasks are protected, and which have lost their machine. */
function protectionRules(args: RemoteClusterArgs, { labels }: Outline) {
  const { lost = [], removable = [], protect = true } = args;
  const isAmong = (machines: readonly string[], label: string | undefined): boolean =>
    label !== undefined && machines.some((machine) => (labels.get(machine) ?? machine) === label);
  const ranOn = ({ machine }: Task) => (machine === undefined ? undefined : labels.get(machine.address));
  const serves = (task: Task) => servedLabel(task, labels);
  return {
    serves,
    isProtected: (task: Task) => protect && !isAmong([...lost, ...removable], serves(task)),
    servesLostMachine: (task: Task) => isAmong(lost, serves(task)),
    runsOnLostMachine: (task: Task) => isAmong(lost, ranOn(task)),
  };
}

function warnUnpinnedHosts(args: RemoteClusterArgs, cluster: RemoteCluster): void {
  if (args.hostKeyChecking !== 'skip-insecure') return;
  const open = unpinnedHosts(args).map(({ machine }) => machine);
  if (open.length === 0) return;
  const warning =
    `host keys are not checked for ${open.join(', ')}: whoever sits on the network in between can read every secret that goes there. ` +
    "Give each a hostKey, and leave hostKeyChecking at 'pinned'.";
  // If the engine cannot log it, the run fails anyway.
  void pulumi.log.warn(warning, cluster);
}

function nodesOf({ nodes }: RemoteClusterArgs): pulumi.Output<readonly RemoteNode[]> {
  return pulumi.all(
    nodes.map((node) =>
      pulumi
        .output(node.address)
        .apply((address) => ({ name: nodeLabel(node) ?? address, address, roles: [...node.roles] })),
    ),
  );
}
