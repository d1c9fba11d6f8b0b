import * as pulumi from '@pulumi/pulumi';
import type { AnyKind } from '../../constructs/kind/kind';
import { provisionerKinds } from '../../constructs/kinds';
import { clusterConfig, spanningProblems, type ClusterConfig } from './checks';
import { configKeys, type ConfigKey, type ConfigKeyName, type ConfigValues } from './keys';
import { ConfigError, keyRemedy, problemsOf, rootOf, withoutSecret, type ConfigProblem } from './problems';

type Switched =
  | 'cluster'
  | 'monitoring'
  | 'monitoringLabels'
  | 'provisioner'
  | 'provisionerImage'
  | 'samples'
  | 'samplesNamespace';

/**
 * The configuration of the stack, checked and with the defaults of {@link configKeys}; undefined for what is
 * not set.
 */
export interface StackConfig extends Omit<ConfigValues, Switched> {
  /** The cluster to create first. */
  readonly cluster: ClusterConfig | undefined;
  /** Undefined: do not install the provisioner. */
  readonly provisionerImage: string | undefined;
  /** The provisioner's kinds; empty without the provisioner. */
  readonly provisionerKinds: readonly AnyKind[];
  /** Namespace of the samples, which is among the guarded ones; undefined: no samples. */
  readonly samplesNamespace: string | undefined;
  /** Labels of the Prometheus operator's objects; undefined: none of them. */
  readonly monitoringLabels: Readonly<Record<string, string>> | undefined;
}

/**
 * Reads the configuration of the stack that is running.
 *
 * @throws pulumi.RunError with everything that is wrong; Pulumi shows it without a stack trace
 */
export function readConfig(): StackConfig {
  try {
    return parseConfig(rawConfig());
  } catch (error) {
    if (error instanceof ConfigError) throw new pulumi.RunError(error.message);
    throw error;
  }
}

/** The namespace of all keys, independent of the project's name. */
const NAMESPACE = 'kindred:';

/** The configuration as Pulumi passes it to a program. */
interface RawConfig {
  /** Texts by key, without the namespace. Values that are not strings are JSON. */
  readonly values: Readonly<Record<string, string>>;
  /** The keys that are kept encrypted. */
  readonly secretKeys: ReadonlySet<string>;
}

/**
 * Part of Pulumi's runtime that its types do not declare; there is no other way to know which keys are
 * secret.
 */
interface SecretKeys {
  readonly isConfigSecret: (key: string) => boolean;
}

function rawConfig(): RawConfig {
  const { isConfigSecret } = pulumi.runtime as unknown as SecretKeys;
  const own = Object.entries(pulumi.runtime.allConfig()).filter(([key]) => key.startsWith(NAMESPACE));
  const name = (key: string): string => key.slice(NAMESPACE.length);
  return {
    values: Object.fromEntries(own.map(([key, value]) => [name(key), value])),
    secretKeys: new Set(own.filter(([key]) => isConfigSecret(key)).map(([key]) => name(key))),
  };
}

/**
 * Checks the configuration of the stack. Pure: reads nothing but its argument.
 *
 * @throws ConfigError with everything that is wrong and the commands that correct it; it quotes no secret
 * @testonly
 */
export function parseConfig(raw: RawConfig): StackConfig {
  const problems: ConfigProblem[] = [...unknownKeys(raw)];
  const entries = Object.entries<ConfigKey>(configKeys).map(([name, key]) => {
    const read = valueOf(name, key, raw);
    problems.push(...read.problems);
    return [name, read.value] as const;
  });
  // Each value is the output of the schema of its key.
  const values = Object.fromEntries(entries) as unknown as ConfigValues;
  const wrong = new Set(problems.map(({ key }) => rootOf(key)));
  const { config, problems: ofCluster } = clusterConfig(values);
  // Secrets that are wrong by themselves are not known here, so they cannot be called missing.
  problems.push(...ofCluster.filter(({ key }) => !(rootOf(key) === 'clusterSecrets' && wrong.has('clusterSecrets'))));
  problems.push(...spanningProblems(values, new Set([...wrong, ...ofCluster.map(({ key }) => rootOf(key))])));
  if (problems.length > 0) throw new ConfigError(problems.map((problem) => shown(problem, raw)));
  return stackConfig(values, config);
}

function unknownKeys({ values }: RawConfig): readonly ConfigProblem[] {
  const known = Object.keys(configKeys);
  const message = `there is no such key; there are ${known.join(', ')}`;
  const unknown = Object.keys(values).filter((name) => !known.includes(name));
  return unknown.sort().map((name) => ({ key: name, message, remedy: `pulumi config rm kindred:${name}` }));
}

function valueOf(name: string, key: ConfigKey, { values, secretKeys }: RawConfig) {
  const fallback = key.schema.parse(key.default);
  const text = values[name];
  if (text === undefined) return { value: fallback, problems: [] };
  const decoded = typeof key.default === 'string' ? text : decode(text);
  const parsed = key.schema.safeParse(decoded);
  if (!parsed.success) {
    return { value: fallback, problems: parsed.error.issues.flatMap((issue) => problemsOf(name, key, text, issue)) };
  }
  const isOpen =
    key.secret === true && !secretKeys.has(name) && JSON.stringify(decoded) !== JSON.stringify(key.default);
  const message = 'it stands in plain text in the configuration file of the stack; keep it encrypted';
  const { shape } = key;
  return { value: parsed.data, problems: isOpen ? [{ key: name, message, shape, remedy: keyRemedy(name, key) }] : [] };
}

function decode(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // What is no JSON is a text, which the schema of the key rejects.
    return text;
  }
}

/** The problem as it is shown. An encrypted value is a secret, even under the wrong key. */
function shown(problem: ConfigProblem, { values, secretKeys }: RawConfig): ConfigProblem {
  const root = rootOf(problem.key);
  const key = Object.hasOwn(configKeys, root) ? configKeys[root as ConfigKeyName] : undefined;
  const isSecret = secretKeys.has(root) || key?.secret === true;
  return isSecret ? withoutSecret(problem, values[root] ?? '') : problem;
}

function stackConfig(values: ConfigValues, cluster: ClusterConfig | undefined): StackConfig {
  const { samples, samplesNamespace, provisioner, provisionerImage, monitoring, monitoringLabels, ...rest } = values;
  const { guardedNamespaces } = values;
  const isNamed = guardedNamespaces.some(
    (entry) => (typeof entry === 'string' ? entry : entry.name) === samplesNamespace,
  );
  return {
    ...rest,
    cluster,
    provisionerImage: provisioner ? provisionerImage : undefined,
    provisionerKinds: provisioner ? provisionerKinds : [],
    guardedNamespaces:
      samples && !isNamed ? [...guardedNamespaces, { name: samplesNamespace, create: true }] : guardedNamespaces,
    samplesNamespace: samples ? samplesNamespace : undefined,
    monitoringLabels: monitoring ? monitoringLabels : undefined,
  };
}
