import type { AnyKind } from '../../constructs/core/kind';
import { kinds, provisionerKinds } from '../../constructs/kinds';
import type { GuardedNamespace } from '../../constructs/platform';
import type { ClusterConfig } from './cluster';
import { guardedNamespace } from './guarded';
import type { ConfigValues } from './keys';
import { findKind } from './kinds';

/** The configuration of the stack, checked and with defaults filled in. */
export interface StackConfig {
  /** Text of a kubeconfig: a secret. */
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  /** The cluster to make first. */
  readonly cluster: ClusterConfig | undefined;
  /** Private SSH key for the machines: a secret. */
  readonly sshKey: string | undefined;
  /** A secret. */
  readonly sshKeyPassphrase: string | undefined;
  /** What the refs of the cluster mean, by `<namespace>/<name>` and key: secrets. */
  readonly clusterSecrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly hostKeyChecking: boolean;
  readonly namespace: string;
  readonly operatorImage: string;
  /** Undefined: without the provisioner. */
  readonly provisionerImage: string | undefined;
  readonly replicas: number;
  /** The operator's kinds. */
  readonly kinds: readonly AnyKind[];
  /** Further namespaces whose Secrets the provisioner reads. */
  readonly provisionerSecretNamespaces: readonly string[];
  /** Secret with the files that objects may name; undefined: none. */
  readonly provisionerConfigSecret: string | undefined;
  /** These files by path, each with its key; undefined: one for each key. */
  readonly provisionerConfigFiles: Readonly<Record<string, string>> | undefined;
  /** The provisioner's kinds; none without it. */
  readonly provisionerKinds: readonly AnyKind[];
  /** Undefined: the whole cluster. */
  readonly watchNamespaces: readonly string[] | undefined;
  /** The samples' namespace among them. */
  readonly guardedNamespaces: readonly (string | GuardedNamespace)[];
  /** Namespace of the samples; undefined: no samples. */
  readonly samplesNamespace: string | undefined;
  /** Labels of the Prometheus operator's objects; undefined: none of them. */
  readonly monitoringLabels: Readonly<Record<string, string>> | undefined;
  /** How long to wait for an operator or a sample, in seconds. */
  readonly timeoutSeconds: number;
  /** Refuse to delete CRDs. */
  readonly protect: boolean;
  /** Refuse to take anything off machines. */
  readonly protectMachines: boolean;
}

/** The configuration that some values, all of them valid, stand for. */
export function stackConfig(values: ConfigValues, cluster: ClusterConfig | undefined): StackConfig {
  const { samples, samplesNamespace, watchNamespaces, provisioner, monitoring } = values;
  const chosen = values.kinds.map((name) => findKind(kinds, name));
  return {
    kubeconfig: given(values.kubeconfig),
    context: given(values.context),
    cluster,
    // `pulumi config set` takes the last line break away, without which OpenSSH reads no key.
    sshKey: given(values.sshKey.trim() === '' ? '' : `${values.sshKey.trimEnd()}\n`),
    sshKeyPassphrase: given(values.sshKeyPassphrase),
    clusterSecrets: values.clusterSecrets,
    hostKeyChecking: values.hostKeyChecking,
    namespace: values.namespace,
    operatorImage: values.operatorImage,
    provisionerImage: provisioner ? values.provisionerImage : undefined,
    provisionerSecretNamespaces: values.provisionerSecretNamespaces,
    provisionerConfigSecret: given(values.provisionerConfigSecret),
    provisionerConfigFiles:
      Object.keys(values.provisionerConfigFiles).length === 0 ? undefined : values.provisionerConfigFiles,
    replicas: values.replicas,
    kinds: chosen.length === 0 ? kinds : kinds.filter((kind) => chosen.includes(kind)),
    provisionerKinds: provisioner ? provisionerKinds : [],
    watchNamespaces: watchNamespaces.length === 0 ? undefined : watchNamespaces,
    guardedNamespaces: guarded(values),
    samplesNamespace: samples ? samplesNamespace : undefined,
    monitoringLabels: monitoring ? values.monitoringLabels : undefined,
    timeoutSeconds: values.timeoutSeconds,
    protect: values.protect,
    protectMachines: values.protectMachines,
  };
}

function given(text: string): string | undefined {
  return text === '' ? undefined : text;
}

function guarded({ guardedNamespaces, samples, samplesNamespace }: ConfigValues): StackConfig['guardedNamespaces'] {
  const all = guardedNamespaces.map(guardedNamespace);
  const named = all.some((entry) => (typeof entry === 'string' ? entry : entry.name) === samplesNamespace);
  return samples && !named ? [...all, { name: samplesNamespace, create: true }] : all;
}
