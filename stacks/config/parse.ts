import type { z } from 'zod';
import type { Problem } from '../../constructs/kube/errors';
import { guardedNamespaceProblems } from '../../constructs/platform';
import { checkedOutline, issueProblems } from '../remote-cluster/validate';
import { configKeys, type ConfigKey, type ConfigKeyName, type ConfigValues } from './keys';

/** The configuration as Pulumi passes it to a program. */
export interface RawConfig {
  /** Texts by key, without the namespace. Values that are not strings are JSON. */
  readonly values: Readonly<Record<string, string>>;
  /** The keys that are kept encrypted. */
  readonly secretKeys: ReadonlySet<string>;
}

/**
 * Checks the configuration of the stack. Pure: reads nothing but its argument.
 *
 * @throws ConfigError with everything that is wrong and the commands that correct it; it quotes no secret
 */
export function parseConfig(raw: RawConfig): ConfigValues {
  const problems: Problem[] = [];
  const entries = Object.entries<ConfigKey>(configKeys).map(([name, key]) => {
    const read = valueOf(name, key, raw);
    problems.push(...read.problems);
    return [name, read.value] as const;
  });
  // Each value is the output of the schema of its key.
  const values = Object.fromEntries(entries) as unknown as ConfigValues;
  const wrong = new Set(problems.map(({ path }) => rootOf(path)));
  // Secrets that are wrong by themselves are not known here, so they cannot be called missing.
  const ofCluster = wrong.has('cluster') ? [] : clusterProblems(values);
  problems.push(...ofCluster.filter(({ path }) => !(rootOf(path) === 'clusterSecrets' && wrong.has('clusterSecrets'))));
  problems.push(...spanningProblems(values, new Set([...wrong, ...ofCluster.map(({ path }) => rootOf(path))])));
  const unknown = unknownKeys(raw);
  if (problems.length + unknown.length > 0) {
    throw new ConfigError([...unknown, ...problems.map((problem) => withoutSecrets(problem, raw))]);
  }
  return values;
}

/** A problem by the path of a key. `isUnknownKey`: the path is a name that no key has, whatever its characters. */
type ConfigProblem = Problem & { readonly isUnknownKey?: true };

function unknownKeys({ values }: RawConfig): readonly ConfigProblem[] {
  const known = Object.keys(configKeys);
  const message = `there is no such key; there are ${known.join(', ')}`;
  const unknown = Object.keys(values).filter((name) => !known.includes(name));
  return unknown.sort().map((path) => ({ path, message, remedy: 'remove', isUnknownKey: true }));
}

/** The configuration of a stack is not valid: everything that is wrong with it, and what to do. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly problems: readonly ConfigProblem[]) {
    super(['the configuration of this stack is not valid:', ...problems.map(linesOf)].join('\n'));
  }
}

function linesOf(problem: ConfigProblem): string {
  const { path, message, remedy } = problem;
  const { shape = '' } = (path === rootOf(path) && keyOf(path)) || {};
  const form = remedy === 'remove' || message.includes(shape) ? '' : `\n    kindred:${path} is ${shape}`;
  return `  kindred:${path}: ${message}${form}\n    try: ${remedyOf(problem)}`;
}

function valueOf(name: string, key: ConfigKey, { values, secretKeys }: RawConfig) {
  const { default: unset = '' } = key;
  const fallback = key.schema.parse(unset);
  const text = values[name];
  if (text === undefined) return { value: fallback, problems: [] };
  const decoded = typeof unset === 'string' ? text : decode(text);
  const { data, error } = key.schema.safeParse(decoded);
  if (error !== undefined) {
    return { value: fallback, problems: error.issues.flatMap((issue) => schemaProblems(name, key, text, issue)) };
  }
  const isSet = JSON.stringify(decoded) !== JSON.stringify(unset);
  if (key.secret !== true || secretKeys.has(name) || !isSet) return { value: data, problems: [] };
  const message = 'it stands in plain text in the configuration file of the stack; keep it encrypted';
  return { value: data, problems: [{ path: name, message }] };
}

/**
 * The problems that the schema of a key found with its value.
 *
 * @param text the value as it was written
 */
function schemaProblems(name: string, { shape }: ConfigKey, text: string, issue: z.core.$ZodIssue): readonly Problem[] {
  const isOfShape = issue.path.length > 0 || !['invalid_type', 'too_big', 'too_small'].includes(issue.code);
  return isOfShape ? issueProblems(issue, [name]) : [{ path: name, message: `"${text}" must be ${shape}` }];
}

function decode(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // What is no JSON is a text, which the schema of the key rejects.
    return text;
  }
}

/** The problems that the cluster's component itself finds, by the keys that set its arguments. */
function clusterProblems(values: ConfigValues): readonly Problem[] {
  const { cluster, clusterSecrets: secrets, hostKeyChecking, sshKeyPassphrase } = values;
  if (cluster === undefined) return [];
  const { name, ...args } = cluster;
  const checked = checkedOutline(name, {
    ...args,
    ...{ secrets, hostKeyChecking: hostKeyChecking ? 'pinned' : 'skip-insecure' },
    // Whether there is a key is a problem of its own, see below.
    sshKey: 'another check',
    ...(sshKeyPassphrase === undefined ? {} : { sshKeyPassphrase }),
  });
  if (!('problems' in checked)) return [];
  return checked.problems.map((problem) => {
    const path = problem.path.replace(/^clusterName$/, 'name').replace(/^secrets/, 'clusterSecrets');
    const isOwnKey = Object.hasOwn(configKeys, rootOf(path));
    return { ...problem, path: isOwnKey ? path : ['cluster', path].filter(Boolean).join('.') };
  });
}

/**
 * Problems that span several keys of the configuration.
 *
 * @param wrong the keys that are wrong by themselves: no further problem with them is reported
 */
function spanningProblems(values: ConfigValues, wrong: ReadonlySet<string>): readonly Problem[] {
  const { cluster, clusterSecrets, context, kubeconfig, namespace, sshKey, sshKeyPassphrase } = values;
  const { provisionerConfigFiles, provisionerConfigSecret, samples, samplesNamespace, watchNamespaces } = values;
  const problems: Problem[] = [];
  const report = (keys: readonly ConfigKeyName[], isWrong: boolean, problem: Problem): void => {
    if (isWrong && !keys.some((key) => wrong.has(key))) problems.push(problem);
  };
  // The configuration must name exactly one cluster, since the current context of a shell changes.
  const isAbsent = kubeconfig === undefined && context === undefined && cluster === undefined;
  const absent = 'no cluster is named: set kubeconfig or context, or cluster to make one';
  report(['kubeconfig', 'context', 'cluster'], isAbsent, { path: 'context', message: absent });

  const guarded = guardedNamespaceProblems({ ...values, createNamespace: !wrong.has('namespace') });
  for (const problem of guarded) report(['guardedNamespaces'], true, problem);
  const isOperators = samples && samplesNamespace === namespace;
  const own = "it is the operators' namespace; samples need one of their own";
  report(['namespace', 'samplesNamespace'], isOperators, { path: 'samplesNamespace', message: own });
  const { length: watched } = watchNamespaces;
  const isUnwatched = samples && watched > 0 && !watchNamespaces.includes(samplesNamespace);
  const message = `no operator watches "${samplesNamespace}": add it here, or do without samples`;
  report(['samplesNamespace', 'watchNamespaces'], isUnwatched, { path: `watchNamespaces[${watched}]`, message });

  const isUnnamed = provisionerConfigFiles !== undefined && provisionerConfigSecret === undefined;
  const unnamed = 'is required: the files of provisionerConfigFiles are in it';
  const path = 'provisionerConfigSecret';
  report(['provisionerConfigFiles', path], isUnnamed, { path, message: unnamed });

  const isKeyless = cluster !== undefined && sshKey === undefined;
  const keyless = 'is required: the machines of kindred:cluster are reached with it';
  report(['sshKey'], isKeyless, { path: 'sshKey', message: keyless });
  const secrets = Object.keys(clusterSecrets).length === 0 ? undefined : clusterSecrets;
  const given = { kubeconfig, context, sshKey, sshKeyPassphrase, clusterSecrets: secrets };
  for (const [path, value] of Object.entries(given)) {
    const isTarget = path === 'kubeconfig' || path === 'context';
    const message = isTarget
      ? 'the platform goes to the cluster that kindred:cluster makes; set only one of them'
      : 'there is no kindred:cluster that it could be for';
    const isWrong = value !== undefined && isTarget === (cluster !== undefined);
    report(['cluster', path as ConfigKeyName], isWrong, { path, message, remedy: 'remove' });
  }
  return problems;
}

/** The name of the key that a path belongs to. */
const rootOf = (path: string): string => /^\w+/.exec(path)?.[0] ?? path;

/** The key that a path belongs to, if there is one. */
const keyOf = (path: string): ConfigKey | undefined =>
  new Map<string, ConfigKey>(Object.entries(configKeys)).get(rootOf(path));

/**
 * The command that corrects a problem: it removes what is at the path, or sets it, of a list or an object the
 * first entry.
 *
 * @testonly
 */
export function remedyOf({ path, remedy, isUnknownKey }: ConfigProblem): string {
  const quoted = `'kindred:${path.replaceAll("'", String.raw`'\''`)}'`;
  if (isUnknownKey === true) return `pulumi config rm ${quoted}`;
  const isKey = path === rootOf(path);
  const { secret = false, default: fallback = '', example } = keyOf(path) ?? {};
  if (remedy === 'remove') return `pulumi config rm ${isKey ? `kindred:${path}` : `--path ${quoted}`}`;
  const set = `pulumi config set${secret ? ' --secret' : ''}`;
  // A secret must not get into a shell's history.
  if (!isKey) return `${set} --path ${quoted} ${secret ? '< FILE' : 'VALUE'}`;
  if (typeof fallback !== 'object') {
    return `${set} kindred:${path} ${example ?? (fallback === false ? 'true' : String(fallback || 'VALUE'))}`;
  }
  return remedyOf({ path: `${path}${example ?? (Array.isArray(fallback) ? '[0]' : '["KEY"]')}`, message: '' });
}

/** A problem whose message quotes no value that is kept encrypted, even under the wrong key. The path has to stay. */
function withoutSecrets(problem: Problem, { values, secretKeys }: RawConfig): Problem {
  const root = rootOf(problem.path);
  const isQuoted = Object.entries(values).some(([name, value]) => {
    if (!secretKeys.has(name) && keyOf(name)?.secret !== true) return false;
    // Short texts occur in every sentence: they only count within quotation marks, longer ones of other keys too.
    const minimum = name === root ? 4 : 12;
    return textsOf(value).some((text) => problem.message.includes(text.length < minimum ? `"${text}"` : text));
  });
  if (!isQuoted) return problem;
  const shape = problem.path === root ? keyOf(root)?.shape : undefined;
  const what = shape === undefined ? 'is not valid' : `it must be ${shape}`;
  return { ...problem, message: `${what}; more is not said, since it is kept encrypted` };
}

/** The parts of a value that a message could quote: its texts, and the whole. */
function textsOf(value: string): readonly string[] {
  const texts: string[] = [value];
  JSON.stringify(decode(value), (_, part: unknown) => {
    if (typeof part === 'string') texts.push(part);
    return part;
  });
  return texts.filter((text) => text !== '');
}
