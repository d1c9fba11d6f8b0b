import type { k8s } from 'cdk8s-plus-27';
import type { AnyKind } from '../core/kind';
import type { MonitoringProps } from './monitoring';
import type { ConversionServing } from './webhook';

/** How much the operator logs. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error';

/** A directory in memory, for what must not reach a disk. */
export interface ScratchProps {
  /** Absolute path in the container. */
  readonly path: string;
  /** Upper bound in MiB; it counts towards the memory limit. */
  readonly sizeMiB: number;
}

/** A directory with the values of a Secret as files. */
export interface ConfigDirectoryProps {
  /** Absolute path in the container. */
  readonly path: string;
  /** Secret in the operator's namespace. Pods wait until it is there. */
  readonly secretName: string;
  /**
   * The files by their paths within the directory, each with its key in the Secret: keys hold no `/`. Pods wait until all keys are there.
   * @default one file for each key, under the key's name
   */
  readonly files?: Readonly<Record<string, string>>;
}

/** How an operator runs: everything about it but where. */
export interface OperatorSettings {
  /** Container image whose entrypoint is the operator. Prefer a digest. */
  readonly image: string;
  /** @default 'IfNotPresent' */
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  /** Names of Secrets with registry credentials. @default none */
  readonly imagePullSecrets?: readonly string[];
  /** The kinds that it runs. At least one; no other operator may run them. */
  readonly kinds: readonly AnyKind[];
  /** Pods; one leads, the others stand by with warm caches. @default 2 */
  readonly replicas?: number;
  /** Arguments after the ones that follow from the other props. @default none */
  readonly args?: readonly string[];
  /** @default 'info' */
  readonly logLevel?: LogLevel;
  /** Port of `/metrics`, `/healthz` and `/readyz`, 1024 to 65535. @default 8080 */
  readonly metricsPort?: number;
  /** Name of the leader-election Lease. @default the operator's name */
  readonly leaseName?: string;
  /**
   * CPU request, a quantity. There is no CPU limit: throttling delays lease renewal, and an operator idles most of the time.
   * @default '50m'
   */
  readonly cpuRequest?: string;
  /** Memory request, in MiB. @default 128 */
  readonly memoryRequestMiB?: number;
  /** Memory limit, in MiB, at least 192; the JavaScript heap is sized from it. @default 256 */
  readonly memoryLimitMiB?: number;
  /** How long a stopping pod may finish what is in flight, in seconds. @default 30 */
  readonly terminationGracePeriodSeconds?: number;
  /** @default none: the namespace's default priority */
  readonly priorityClassName?: string;
  /** @default any node */
  readonly nodeSelector?: Readonly<Record<string, string>>;
  /** @default none */
  readonly tolerations?: readonly k8s.Toleration[];
  /** A writable directory, in memory; the root file system is read-only. @default none */
  readonly scratch?: ScratchProps;
  /** Files that it may read. @default none */
  readonly configDirectory?: ConfigDirectoryProps;
  /** Who may reach the metrics port. @default everyone in the cluster */
  readonly metricsFrom?: readonly k8s.NetworkPolicyPeer[];
}

/** An operator and where it runs. */
export interface OperatorDeploymentProps extends OperatorSettings {
  /** Name of the Deployment, its ServiceAccount and the rest: a DNS label of at most 50 characters. */
  readonly name: string;
  /** Namespace of all objects. It must stand already, and should enforce the `restricted` Pod Security Standard. */
  readonly namespace: string;
  /** The namespaces whose objects it reconciles; its role must be confined alike. @default all */
  readonly watchNamespaces?: readonly string[];
  /** Objects of the Prometheus operator. @default none */
  readonly monitoring?: MonitoringProps;
  /** How it converts objects between versions. Must be set when a kind has several; nothing is served when none has. @default none */
  readonly conversion?: ConversionServing;
}

/** The defaults of {@link OperatorDeploymentProps}. */
export const operatorDefaults = Object.freeze({
  replicas: 2,
  logLevel: 'info',
  metricsPort: 8080,
  cpuRequest: '50m',
  memoryRequestMiB: 128,
  memoryLimitMiB: 256,
  terminationGracePeriodSeconds: 30,
} as const);
