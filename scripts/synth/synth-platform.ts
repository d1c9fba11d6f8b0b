import type { App } from 'cdk8s';
import type { AnyKind } from '../../constructs/core/kind';
import type { KubeObject } from '../../constructs/core/kube-object';
import { Platform, provisioner } from '../../constructs/platform';
import type { PlatformOperator } from '../../constructs/platform';

/** What `npm run synth` is told. */
export interface SynthOptions {
  readonly kinds: readonly AnyKind[];
  /** Kinds whose CRDs are written though nothing runs them: no operator, no permissions, no samples. @default none */
  readonly unserved?: readonly AnyKind[];
  /** Image of the operator. */
  readonly image: string;
  /** Image of the provisioner, which brings its tools along. */
  readonly provisionerImage: string;
  /** Namespace of the operators. */
  readonly namespace: string;
  /** Namespace of the samples: created, with guardrails. */
  readonly samplesNamespace: string;
}

/** The kinds whose operator holds keys to machines, so that it has an account and an image of its own. */
const PROVISIONER_GROUP = 'clusterprovisioner.rke.io';

/** The platform's objects in the order of their dependencies. */
export function synthPlatform(app: App, options: SynthOptions): readonly KubeObject[] {
  const platform = new Platform(app, 'kindred', {
    namespace: options.namespace,
    operators: operators(options),
    guardedNamespaces: [{ name: options.samplesNamespace, create: true }],
  });
  return platform.toJson() as KubeObject[];
}

function operators({ kinds, image, provisionerImage, namespace }: SynthOptions): readonly PlatformOperator[] {
  const provisioned = kinds.filter(({ group }) => group === PROVISIONER_GROUP);
  const operator = { name: 'operator', image, kinds: kinds.filter((kind) => !provisioned.includes(kind)) };
  if (provisioned.length === 0) return [operator];
  return [operator, provisioner({ image: provisionerImage, kinds: provisioned, namespace })];
}
