import type * as pulumi from '@pulumi/pulumi';
import type { z } from 'zod';
import type { k3sOptions, rke2Options, rkeOptions } from '../../../constructs/kinds/cluster-options';
import type { nodes } from '../../../constructs/kinds/cluster-node';
import type { InstallerSource } from '../../../provision';

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
