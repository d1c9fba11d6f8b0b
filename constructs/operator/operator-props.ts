import type { k8s } from 'cdk8s-plus-27';
import type { AnyKind } from '../kind/kind';
import { isQuantity } from '../kind/quantity';
import type { Problem } from '../kube/errors';
import { isImageReference, nameProblem } from '../kube/names';
import { configFilesProblems } from '../kube/secret-files';
import { MIN_MEMORY_MIB } from './node-options';
import type { MonitoringProps } from './monitoring';
import { DEFAULT_WEBHOOK_PORT, hasMultipleVersions, type ConversionServing, type WebhookProps } from './webhook';

/** Props of `OperatorDeployment`: how an operator runs, and where. */
export interface OperatorDeploymentProps extends OperatorSettings {
  /** Name of the Deployment, its ServiceAccount and the rest: a DNS label of at most 50 characters. */
  readonly name: string;
  /**
   * Namespace of all objects. It must exist already, and should enforce the `restricted` Pod Security
   * Standard.
   */
  readonly namespace: string;
  /** The namespaces whose objects it reconciles; its role must be confined to them too. @default all */
  readonly watchNamespaces?: readonly string[];
  /** Objects of the Prometheus operator. @default none */
  readonly monitoring?: MonitoringProps;
  /** How it converts objects between versions. Must be set when a kind has several; nothing is served when none has. @default none */
  readonly conversion?: ConversionServing;
}

/** How an operator runs: everything except its name and its namespaces. */
export interface OperatorSettings {
  /** Container image whose entrypoint is the operator. Prefer a digest. */
  readonly image: string;
  /** @default 'IfNotPresent' */
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  /** Names of Secrets with registry credentials. @default none */
  readonly imagePullSecrets?: readonly string[];
  /** The kinds that it runs. At least one; no other operator may run them. */
  readonly kinds: readonly AnyKind[];
  /** Number of pods: one is the leader, the others are standbys with warm caches. @default 2 */
  readonly replicas?: number;
  /** Further arguments, after those derived from the other props. @default none */
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
  /**
   * How long a stopping pod may finish what is in flight, in seconds; the steps of effects have 30 s less.
   * @default 30; with kinds that have effects, 330
   */
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
  /** The peers that may reach the metrics port. @default everyone in the cluster */
  readonly metricsFrom?: readonly k8s.NetworkPolicyPeer[];
}

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
  /** Secret in the operator's namespace. Pods wait until it exists. */
  readonly secretName: string;
  /**
   * The files by their paths within the directory, each with its key in the Secret: keys contain no `/`. Pods
   * wait until all keys exist.
   * @default one file for each key, under the key's name
   */
  readonly files?: Readonly<Record<string, string>>;
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

/** In characters: leaves room for `-metrics`, since a Service's name has at most 63. */
const MAX_OPERATOR_NAME = 50;

/** All that is wrong with the props of an operator, paths relative to them. */
export function operatorProblems(props: OperatorDeploymentProps): readonly Problem[] {
  return [
    ...nameProblems('name', props.name, { format: 'dns-1035-label', maxLength: MAX_OPERATOR_NAME }),
    ...nameProblems('namespace', props.namespace, { format: 'dns-label' }),
    ...namespaceListProblems('watchNamespaces', props.watchNamespaces),
    ...settingsProblems(props),
  ];
}

/** All that is wrong with the settings of an operator. */
function settingsProblems(props: OperatorSettings): readonly Problem[] {
  const { image, kinds, replicas, metricsPort, leaseName, scratch, configDirectory } = props;
  return [
    ...(isImageReference(image)
      ? []
      : [problem('image', `"${image}" is no image: give one such as registry/name@sha256:...`)]),
    ...(kinds.length > 0 ? [] : [problem('kinds', 'it is empty: name the kinds that the operator runs')]),
    ...duplicates(kinds.map(({ crdName }) => crdName)).map((name) => problem('kinds', `${name} stands twice`)),
    ...integerProblems('replicas', replicas, 0, 10),
    ...integerProblems('metricsPort', metricsPort, 1024, 65535),
    ...integerProblems('terminationGracePeriodSeconds', props.terminationGracePeriodSeconds, 1, 86_400),
    ...(leaseName === undefined ? [] : nameProblems('leaseName', leaseName, { format: 'dns-subdomain' })),
    ...quantityProblems('cpuRequest', props.cpuRequest),
    ...memoryProblems(props),
    ...(scratch === undefined || scratch.path.startsWith('/')
      ? []
      : [problem('scratch.path', `"${scratch.path}" must be absolute`)]),
    ...(configDirectory === undefined || configDirectory.path.startsWith('/')
      ? []
      : [problem('configDirectory.path', `"${configDirectory.path}" must be absolute`)]),
    ...(configDirectory === undefined
      ? []
      : nameProblems('configDirectory.secretName', configDirectory.secretName, { format: 'dns-subdomain' })),
    ...configFilesProblems('configDirectory.files', configDirectory?.files),
  ];
}

/** All that is wrong with the settings by which an operator converts its kinds. */
export function webhookProblems(props: WebhookProps): readonly Problem[] {
  const { kinds, conversion } = props;
  const names = kinds.filter(hasMultipleVersions).map(({ crdName }) => crdName);
  if (names.length === 0) return [];
  if (conversion === undefined) {
    const message = `${names.join(', ')} ${names.length === 1 ? 'has' : 'have'} several versions: say with which certificate the operator is to convert between them`;
    return [{ path: 'conversion', message }];
  }
  const { certSecretName, port } = conversion;
  const problems: Problem[] = [];
  const name = nameProblem(certSecretName, { format: 'dns-subdomain' });
  if (name !== undefined) problems.push({ path: 'conversion.certSecretName', message: name });
  if (port !== undefined && !(Number.isInteger(port) && port >= 1024 && port <= 65535)) {
    problems.push({ path: 'conversion.port', message: `${port} must be an integer from 1024 to 65535` });
  } else if ((port ?? DEFAULT_WEBHOOK_PORT) === (props.metricsPort ?? operatorDefaults.metricsPort)) {
    problems.push({ path: 'conversion.port', message: `${port ?? DEFAULT_WEBHOOK_PORT} is the metrics port already` });
  }
  return problems;
}

/** What is wrong with a list of namespaces to watch. */
export function namespaceListProblems(path: string, namespaces: readonly string[] | undefined): readonly Problem[] {
  if (namespaces === undefined) return [];
  return [
    ...(namespaces.length > 0 ? [] : [problem(path, 'it is empty: name one or more, or leave it out for all')]),
    ...namespaces.flatMap((name, i) => nameProblems(`${path}[${i}]`, name, { format: 'dns-label' })),
    ...duplicates(namespaces).map((name) => problem(path, `"${name}" stands twice`)),
  ];
}

function memoryProblems(props: OperatorSettings): readonly Problem[] {
  const limit = props.memoryLimitMiB ?? operatorDefaults.memoryLimitMiB;
  const found = [
    ...integerProblems('memoryLimitMiB', props.memoryLimitMiB, MIN_MEMORY_MIB, 65_536),
    ...integerProblems('memoryRequestMiB', props.memoryRequestMiB, 1, 65_536),
    ...integerProblems('scratch.sizeMiB', props.scratch?.sizeMiB, 1, 65_536),
  ];
  if ((props.memoryRequestMiB ?? operatorDefaults.memoryRequestMiB) > limit) {
    found.push(problem('memoryRequestMiB', `it exceeds memoryLimitMiB, which is ${limit}`));
  }
  if (props.scratch !== undefined && limit - props.scratch.sizeMiB < MIN_MEMORY_MIB) {
    found.push(
      problem('scratch.sizeMiB', `it leaves less than ${MIN_MEMORY_MIB} of memoryLimitMiB (${limit}): raise the limit`),
    );
  }
  return found;
}

function nameProblems(path: string, value: string, rule: Parameters<typeof nameProblem>[1]): readonly Problem[] {
  const message = nameProblem(value, rule);
  return message === undefined ? [] : [problem(path, message)];
}

function quantityProblems(path: string, value: string | undefined): readonly Problem[] {
  const ok: boolean = value === undefined || isQuantity(value);
  return ok ? [] : [problem(path, `"${value ?? ''}" is no quantity; write 50m or 1`)];
}

function integerProblems(path: string, value: number | undefined, min: number, max: number): Problem[] {
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max)) return [];
  return [problem(path, `${value} must be an integer from ${min} to ${max}`)];
}

function duplicates(values: readonly string[]): readonly string[] {
  return [...new Set(values.filter((value, i) => values.indexOf(value) !== i))];
}

function problem(path: string, message: string): Problem {
  return { path, message };
}
