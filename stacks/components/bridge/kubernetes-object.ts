import { getVersion } from '@pulumi/kubernetes/utilities';
import * as pulumi from '@pulumi/pulumi';
import type { Manifest } from './manifest';

/** `metadata` of an object as the server has it. */
export interface ServerMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * A Kubernetes object as a resource of the `kubernetes` provider, of the type that the provider's own classes have too. Those classes are
 * not used: importing them loads thousands of modules, and CRs have none.
 */
export class KubernetesObject extends pulumi.CustomResource {
  // Declared only: Pulumi sets them, and a field of the class would overwrite what it set.
  declare readonly apiVersion: pulumi.Output<string>;
  declare readonly kind: pulumi.Output<string>;
  declare readonly metadata: pulumi.Output<ServerMetadata>;
  /** Unknown in a preview of what is not created yet; undefined for kinds without one. */
  declare readonly status: pulumi.Output<unknown>;

  constructor(
    name: string,
    type: Pick<Manifest, 'apiVersion' | 'kind'>,
    inputs: pulumi.Inputs,
    options: pulumi.CustomResourceOptions,
  ) {
    super(typeToken(type), name, { status: undefined, ...inputs }, { version: getVersion(), ...options });
  }
}

/** The type of a resource of the `kubernetes` provider: `kubernetes:apps/v1:Deployment`. The core group is `core`. */
export function typeToken({ apiVersion, kind }: Pick<Manifest, 'apiVersion' | 'kind'>): string {
  return `kubernetes:${apiVersion.includes('/') ? apiVersion : `core/${apiVersion}`}:${kind}`;
}
