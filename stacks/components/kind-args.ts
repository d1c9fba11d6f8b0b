import type * as pulumi from '@pulumi/pulumi';
import type { AnyKind, KindSpec } from '../../constructs/kind/kind';

/** A value whose leaves may be Outputs. */
export type WithOutputs<T> = [T] extends [string | number | boolean | null | undefined]
  ? pulumi.Input<T>
  : T extends readonly (infer E)[]
    ? readonly WithOutputs<E>[]
    : T extends object
      ? { readonly [K in keyof T]: WithOutputs<T[K]> }
      : pulumi.Input<T>;

/** `metadata` of an object of a kind. */
export interface KindMetadata {
  readonly name: string;
  /** Required for namespaced kinds: no cluster is asked, and no kubeconfig's default is taken. */
  readonly namespace?: pulumi.Input<string>;
  readonly labels?: Readonly<Record<string, pulumi.Input<string>>>;
  readonly annotations?: Readonly<Record<string, pulumi.Input<string>>>;
}

interface CommonArgs<K extends AnyKind> {
  /** The kind of the object. */
  readonly kind: K;
  readonly metadata: KindMetadata;
  /**
   * `resource`: the object itself, which the operator in the cluster then reconciles. `children`: what the operator would create for it, where
   * no operator is wanted; Outputs may stand for texts and numbers then. Not of kinds that act by effects (Cluster, Kubeconfig): only an operator carries
   * these out.
   * @default 'resource'
   */
  readonly as?: 'resource' | 'children';
  /**
   * Wait until the object is Ready as it is now, by its conditions. Only of a `resource`; Pulumi waits for children as it does for their kinds.
   * @default true
   */
  readonly waitUntilReady?: boolean;
  /** How long to wait for it to become ready, and to be gone, in seconds. @default 600, which is Pulumi's */
  readonly timeoutSeconds?: number;
}

/** What a KindComponent is made of. A spec may be left out where nothing in it is required. */
export type KindComponentArgs<K extends AnyKind> = CommonArgs<K> &
  (Partial<KindSpec<K>> extends KindSpec<K>
    ? { readonly spec?: WithOutputs<KindSpec<K>> }
    : { readonly spec: WithOutputs<KindSpec<K>> });
