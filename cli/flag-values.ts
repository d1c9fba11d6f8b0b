import { describeNameRule, nameProblem, type NameRule } from '../constructs/kube/names';
import { configFilesProblems, isImage } from '../constructs/operator';
import { UsageError } from './errors';

/**
 * The values of flags: each function takes the flag's name without dashes and the text that was given for it.
 *
 * Errors: a UsageError that names the flag, what was given, and what may be given
 */

/** A whole number within bounds, both admitted. */
export function whole(name: string, value: string, min: number, max: number): number {
  const number = Number(value);
  if (/^\d+$/.test(value) && number >= min && number <= max) return number;
  throw wrong(name, value, `it must be a whole number from ${min} to ${max}`);
}

/** One of some words. */
export function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw wrong(name, value, `it may be one of ${allowed.join(', ')}`);
}

const NAMESPACE: NameRule = { format: 'dns-label' };

/** The name of a namespace. */
export function namespaceName(name: string, value: string): string {
  if (nameProblem(value, NAMESPACE) === undefined) return value;
  throw wrong(name, value, `a namespace's name must be ${describeNameRule(NAMESPACE)}`);
}

const SECRET: NameRule = { format: 'dns-subdomain' };

/** The name of a Secret; undefined stays undefined. */
export function secretName(name: string, value: string | undefined): string | undefined {
  if (value === undefined || nameProblem(value, SECRET) === undefined) return value;
  throw wrong(name, value, `a Secret's name must be ${describeNameRule(SECRET)}`);
}

/** Files by their paths, each given as `PATH=KEY`; undefined stays undefined. */
export function configFiles(
  name: string,
  values: readonly string[] | undefined,
): Readonly<Record<string, string>> | undefined {
  if (values === undefined) return undefined;
  const files: Record<string, string> = {};
  for (const value of values) {
    const [, path = '', key = ''] = /^(.+)=(.+)$/.exec(value) ?? [];
    const [problem] = configFilesProblems(name, { [path]: key });
    if (path === '') throw wrong(name, value, 'give PATH=KEY, such as clusters/aws.yml=aws.yml');
    if (problem !== undefined) throw wrong(name, value, problem.message);
    if (Object.hasOwn(files, path)) throw wrong(name, value, 'this path was given before');
    files[path] = key;
  }
  return files;
}

/** The reference of a container image; undefined stays undefined. */
export function image(name: string, value: string | undefined): string | undefined {
  if (value === undefined || isImage(value)) return value;
  throw wrong(name, value, 'it is no image: give one such as registry.example.com/name:tag, without spaces');
}

/** The path of a folder, which need not be there yet. */
export function folder(name: string, value: string): string {
  if (value !== '') return value;
  throw wrong(name, value, 'it is empty: name a folder, or leave the flag out');
}

/** Refuses a value of a flag. */
export function wrong(name: string, value: string, why: string): UsageError {
  return new UsageError(`--${name}=${value}: ${why}`);
}
