import type * as pulumi from '@pulumi/pulumi';
import type { GuardedNamespace, PlatformOperator, PlatformProps } from '../constructs/platform';

/** An operator of a platform, whose values another resource may give. */
export interface PlatformOperatorArgs extends Omit<PlatformOperator, 'image' | 'replicas'> {
  /** Container image whose entrypoint is the operator. Prefer a digest. */
  readonly image: pulumi.Input<string>;
  /** Number of pods, 0 to 10: one leads, the others stand by. @default 2 */
  readonly replicas?: pulumi.Input<number>;
}

/** A namespace with guardrails, whose name another resource may give. */
export interface GuardedNamespaceArgs extends Omit<GuardedNamespace, 'name'> {
  readonly name: pulumi.Input<string>;
}

/** What a PlatformComponent is made of: a platform, and the cluster that it goes to. */
export interface PlatformComponentArgs extends Omit<PlatformProps, 'guardedNamespaces' | 'namespace' | 'operators'> {
  /**
   * Namespace of the operators. Where it is an Output, a provisioner of the platform is told the same one: `provisioner({ namespace:
   * outputs.text(namespace), ... })`.
   * @default 'kindred-system'
   */
  readonly namespace?: pulumi.Input<string>;
  /** The operators, each with the kinds that it alone runs. At least one. */
  readonly operators: readonly PlatformOperatorArgs[];
  /**
   * Namespaces that get a ResourceQuota and a LimitRange, by name or with numbers of their own. Resources of one whose name is an Output are named by its
   * place in this list.
   * @default none
   */
  readonly guardedNamespaces?: readonly (pulumi.Input<string> | GuardedNamespaceArgs)[];
  /**
   * Text of the cluster's kubeconfig. Only the cluster and the user of the context are kept, as a secret, with what the files hold that it names by
   * absolute paths.
   * @default the kubeconfig files of whoever runs Pulumi, as kubectl finds them, unless `provider` is among the options, or the parent has one
   */
  readonly kubeconfig?: pulumi.Input<string>;
  /** Context of the kubeconfig. One that does not exist is an error. @default its current one */
  readonly context?: pulumi.Input<string>;
  /**
   * Tells the cluster from others, whatever its kubeconfig says, and without asking it. Another value is another cluster: all that is
   * installed is created on the new one and removed from the old one. Of a cluster that the same program makes, give the cluster's name.
   * @default the UID of the namespace `kube-system`. On another cluster the program then fails, before anything changes, and says how to move the platform
   */
  readonly clusterIdentifier?: string;
  /**
   * For CRDs and created guarded namespaces, where the options name a `provider`, or the parent has one: one of the same cluster with `upsertExistingObjects` and
   * `enablePatchForce`.
   * @default made from `kubeconfig` and `context`
   */
  readonly crdProvider?: pulumi.ProviderResource;
  /**
   * For the operators' namespace, where the options name a `provider` and the namespace is kept: one of the same cluster with
   * `upsertExistingObjects` and `enablePatchForce`. Without these, a platform that was destroyed cannot be made again, since the namespace stayed.
   * Another provider than before makes Pulumi replace the namespace: it deletes it, with all that is in it.
   * @default `provider`, or made from `kubeconfig` and `context`
   */
  readonly namespaceProvider?: pulumi.ProviderResource;
  /** How long to wait until each operator is available, or gone, in seconds. @default 600, which is Pulumi's */
  readonly timeoutSeconds?: number;
  /**
   * Whether the operators' namespace stays when the stack is destroyed, and is taken over by the next `up` if it stands. It does so with
   * all that is in it: state of a provisioner, and what others put there. With false, deleting it deletes all of that, and one that
   * stands already makes the first `up` fail. Changing it takes a run of its own, before the one that removes the namespace.
   * Only where the platform creates the namespace.
   * @default true
   */
  readonly keepNamespace?: boolean;
  /** Refuse to delete CRDs. Destroying the stack then fails until it is false. @default false: they stay in the cluster anyway */
  readonly protect?: boolean;
}
