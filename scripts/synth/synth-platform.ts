import type { App } from 'cdk8s';
import type { AnyKind } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { Platform, provisioner, type PlatformOperator } from '../../constructs/platform';

/** What `npm run synth` is told. */
export interface SynthOptions {
  readonly kinds: readonly AnyKind[];
  /** Kinds of the provisioner: their CRDs are written, whether or not it runs; they have no samples, which would make clusters. @default none */
  readonly provisionerKinds?: readonly AnyKind[];
  /** Image of the operator. */
  readonly image: string;
  /** Image of the provisioner, which brings its tools along. @default no provisioner */
  readonly provisionerImage?: string | undefined;
  /** Secret in the operators' namespace with the files that a Cluster's `configPath` may name. @default none */
  readonly provisionerConfigSecret?: string | undefined;
  /** These files by path, each with its key in the Secret. @default one file for each key */
  readonly provisionerConfigFiles?: Readonly<Record<string, string>> | undefined;
  /** Namespace of the operators. */
  readonly namespace: string;
  /** Namespace of the samples: created, with guardrails. */
  readonly samplesNamespace: string;
}

/** The platform's objects in the order of their dependencies. */
export function synthPlatform(app: App, options: SynthOptions): readonly KubeObject[] {
  const platform = new Platform(app, 'kindred', {
    namespace: options.namespace,
    operators: operators(options),
    guardedNamespaces: [{ name: options.samplesNamespace, create: true }],
  });
  return platform.toJson() as KubeObject[];
}

/** Operators apart where trust differs: the provisioner alone holds keys to machines. */
function operators(options: SynthOptions): readonly PlatformOperator[] {
  const { kinds, image, provisionerKinds = [], provisionerImage, namespace } = options;
  const operator = { name: 'operator', image, kinds };
  if (provisionerImage === undefined || provisionerKinds.length === 0) return [operator];
  const { provisionerConfigSecret: configSecretName, provisionerConfigFiles: configFiles } = options;
  return [
    operator,
    provisioner({
      ...{ image: provisionerImage, kinds: provisionerKinds, namespace },
      ...(configSecretName === undefined ? {} : { configSecretName }),
      ...(configFiles === undefined ? {} : { configFiles }),
    }),
  ];
}
