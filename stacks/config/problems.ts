import type { z } from 'zod';
import { propertyPath } from '../bridge/manifest';
import type { ConfigKey } from './keys';

/** One thing that is wrong with the configuration. */
export interface ConfigProblem {
  /** The key or a path below it, without the namespace `kindred:`. */
  readonly key: string;
  /** What is wrong. Quotes no secret. */
  readonly message: string;
  /** The form of a value of the key; absent if no value would help. */
  readonly shape?: string;
  /** The command that corrects it. */
  readonly remedy: string;
}

/** The configuration of a stack is not valid: everything that is wrong with it, and what to do. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly problems: readonly ConfigProblem[]) {
    super(['the configuration of this stack is not valid:', ...problems.map(linesOf)].join('\n'));
  }
}

function linesOf({ key, message, shape, remedy }: ConfigProblem): string {
  const value = shape === undefined || message.includes(shape) ? '' : `\n    kindred:${rootOf(key)} is ${shape}`;
  return `  kindred:${key}: ${message}${value}\n    try: ${remedy}`;
}

/** The key that a path belongs to. */
export const rootOf = (path: string): string => /^\w+/.exec(path)?.[0] ?? path;

/** The command that sets the value at a path of the configuration. */
export const valueRemedy = (path: string): string => `pulumi config set --path 'kindred:${path}' VALUE`;

/**
 * The same for a secret. Without a value the command prompts for it, so that it does not get into a shell's
 * history.
 */
export const secretRemedy = (path: string): string => `pulumi config set --secret --path 'kindred:${path}'`;

/** The command that removes the value at a path of the configuration. */
export const removalRemedy = (path: string): string => `pulumi config rm --path 'kindred:${path}'`;

/** The command that sets a key as a whole. */
export const keyRemedy = (name: string, { example }: ConfigKey): string =>
  `pulumi config set ${example.replace(new RegExp(`\\b${name}\\b`), `kindred:${name}`)}`;

/**
 * The problems that a schema found with the value of a key; for a union, those of the closest member.
 *
 * @param text the value as it was written
 */
export function problemsOf(
  name: string,
  key: ConfigKey,
  text: string,
  issue: z.core.$ZodIssue,
): readonly ConfigProblem[] {
  const { shape, secret } = key;
  const at = (path: readonly PropertyKey[]): string => propertyPath([name, ...(path as (string | number)[])]);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((field) => {
      const path = at([...issue.path, field]);
      return { key: path, message: issue.message, shape, remedy: removalRemedy(path) };
    });
  }
  if (issue.code === 'invalid_union') {
    const members = issue.errors.filter(([first]) => first?.code !== 'invalid_type' || first.path.length > 0);
    const closest = members[0] ?? issue.errors.at(-1) ?? [];
    return closest.flatMap((inner) => problemsOf(name, key, text, { ...inner, path: [...issue.path, ...inner.path] }));
  }
  const path = at(issue.path);
  if (path !== name) {
    const remedy = secret === true ? secretRemedy(path) : valueRemedy(path);
    return [{ key: path, message: messageOf(issue), shape, remedy }];
  }
  const isOfType = !['invalid_type', 'too_big', 'too_small'].includes(issue.code);
  const message = isOfType ? messageOf(issue) : `"${text}" must be ${shape}`;
  return [{ key: path, message, shape, remedy: keyRemedy(name, key) }];
}

/** The message of an issue; for an invalid key of an object, that of the key's own schema. */
function messageOf(issue: z.core.$ZodIssue): string {
  return issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
}

/** A problem with a value that is kept encrypted, without any text of that value. */
export function withoutSecret(problem: ConfigProblem, text: string): ConfigProblem {
  // Two or three letters occur in every sentence, so a short text only counts within quotation marks.
  const isQuoted = (part: string): boolean => problem.message.includes(part.length < 4 ? `"${part}"` : part);
  if (!textsOf(text).some(isQuoted)) return problem;
  const { shape } = problem;
  const message = shape === undefined ? 'is not valid' : `it must be ${shape}`;
  return { ...problem, message: `${message}; more is not said, since it is kept encrypted` };
}

/** The parts of a value that a message could quote: its texts, and the whole. */
function textsOf(text: string): readonly string[] {
  const found: string[] = [text];
  try {
    JSON.parse(text, (_, value: unknown) => {
      if (typeof value === 'string') found.push(value);
      return value;
    });
  } catch {
    // It is no JSON, so only the whole can be quoted.
  }
  return found.filter((part) => part !== '');
}
