import type { z } from 'zod';
import { clusterConfig } from './cluster';
import { ConfigError } from './config-error';
import type { ConfigProblem } from './config-error';
import { configKeys, remedyOf } from './keys';
import type { ConfigKey, ConfigKeyName, ConfigValues } from './keys';
import { spanningProblems } from './rules';
import { stackConfig } from './stack-config';
import type { StackConfig } from './stack-config';

/** The configuration as Pulumi hands it to a program. */
export interface RawConfig {
  /** Texts by key, without the namespace. What is not a string is JSON. */
  readonly values: Readonly<Record<string, string>>;
  /** The keys that are kept encrypted. */
  readonly secretKeys: ReadonlySet<string>;
}

/**
 * The configuration of the stack, checked. Pure: reads nothing but its argument.
 *
 * @throws ConfigError with everything that is wrong, and the command that mends it; it quotes no secret
 */
export function parseConfig(raw: RawConfig): StackConfig {
  const problems: ConfigProblem[] = unknownKeys(raw);
  const entries = Object.entries<ConfigKey>(configKeys).map(([name, key]) => {
    const [value, found] = valueOf(name, key, raw);
    problems.push(...found);
    return [name, found.length === 0 ? value : key.default] as const;
  });
  // Each value has passed the schema of its key, or is the default.
  const values = Object.fromEntries(entries) as unknown as ConfigValues;
  const wrong = new Set(problems.map(({ key }) => key));
  const cluster = clusterConfig(values);
  // Nothing more is said of secrets that are wrong by themselves, and so not known here.
  const ofCluster = cluster.problems.filter(
    ({ key }) => !(key.startsWith('clusterSecrets[') && wrong.has('clusterSecrets')),
  );
  problems.push(...ofCluster, ...spanningProblems(values, wrong));
  if (problems.length > 0) throw new ConfigError(problems);
  return stackConfig(values, cluster.config);
}

function unknownKeys({ values }: RawConfig): ConfigProblem[] {
  const known = Object.keys(configKeys);
  return Object.keys(values)
    .filter((key) => !known.includes(key))
    .sort()
    .map((key) => ({
      key,
      message: `there is no such key; there are ${known.join(', ')}`,
      remedy: `pulumi config rm kindred:${key}`,
    }));
}

function valueOf(name: string, key: ConfigKey, raw: RawConfig): readonly [unknown, readonly ConfigProblem[]] {
  const text = raw.values[name];
  if (text === undefined) return [key.default, []];
  const problem = (message: string): ConfigProblem => ({ key: name, message, ...remedyOf(name as ConfigKeyName) });
  const value = decode(key, text);
  // What somebody keeps encrypted is a secret, be it under the wrong key.
  const secret = key.secret === true || raw.secretKeys.has(name);
  if (value === undefined) return [undefined, [problem(typeMessage(key.type, secret ? undefined : text))]];
  if (key.secret === true && !raw.secretKeys.has(name) && !isEmpty(value)) {
    return [value, [problem('it stands in plain text in the configuration file of the stack; keep it encrypted')]];
  }
  const parsed = key.schema.safeParse(value);
  if (parsed.success) return [parsed.data, []];
  return [undefined, parsed.error.issues.flatMap((issue) => issueLines(issue)).map(problem)];
}

/** The value that a text stands for; undefined when it is not of the key's type. */
function decode({ type }: ConfigKey, text: string): unknown {
  if (type === 'string') return text;
  try {
    const value: unknown = JSON.parse(text);
    return isOfType(type, value) ? value : undefined;
  } catch {
    // The caller says what is wrong with it, without its text where it is a secret.
    return undefined;
  }
}

function isOfType(type: ConfigKey['type'], value: unknown): boolean {
  switch (type) {
    case 'string':
      return typeof value === 'string';
    case 'integer':
      return Number.isInteger(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
  }
}

const typeNames = {
  string: 'a text',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
} as const;

function typeMessage(type: ConfigKey['type'], text: string | undefined): string {
  return `${text === undefined ? 'it' : `"${text}"`} must be ${typeNames[type]}`;
}

function isEmpty(value: unknown): boolean {
  return value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
}

/** What zod found, one line each; of a union, what the closest of its members says. */
function issueLines(issue: z.core.$ZodIssue): readonly string[] {
  const at = pathOf(issue.path);
  if (issue.code !== 'invalid_union') return [`${at}${issue.message}`];
  const members = issue.errors.filter(([first]) => first?.code !== 'invalid_type' || first.path.length > 0);
  const [closest] = members;
  if (closest === undefined) return [`${at}it must be a name, or an object with a name`];
  return closest.flatMap(issueLines).map((line) => `${at}${line}`);
}

function pathOf(path: readonly PropertyKey[]): string {
  if (path.length === 0) return '';
  return `${path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')}: `;
}
