import { describeNameRule, isImageReference, nameProblem, type NameRule } from '../constructs/kube/names';
import { configFilesProblems } from '../constructs/kube/secret-files';
import { Option } from '@commander-js/extra-typings';
import { UsageError } from './errors';

/** Receives the arguments of the command that was given. */
export type TakeArguments<A> = (args: A) => void;

/** Collects the values of a flag that may be repeated. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** How a command prints its result. @param json - what it prints as JSON */
export const outputOption = (
  json: string,
): Option<'-o, --output <format>', undefined, 'text', undefined, false, 'text' | 'json'> =>
  new Option('-o, --output <format>', `text, or json: ${json}`).choices(['text', 'json']).default('text' as const);

/** Prints what a script reads. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}

// The parsers of flag values. Each takes the flag's name without dashes and the given text, and throws a
// UsageError that names the flag, what was given, and what is allowed.

/** A whole number from `min` to `max`. */
export function parseInteger(name: string, value: string, min: number, max: number): number {
  const number = Number(value);
  if (/^\d+$/.test(value) && number >= min && number <= max) return number;
  throw flagError(name, value, `it must be a whole number from ${min} to ${max}`);
}

const NAMESPACE: NameRule = { format: 'dns-label' };

/** The name of a namespace. */
export function namespaceName(name: string, value: string): string {
  if (nameProblem(value, NAMESPACE) === undefined) return value;
  throw flagError(name, value, `a namespace's name must be ${describeNameRule(NAMESPACE)}`);
}

const SECRET: NameRule = { format: 'dns-subdomain' };

/** The name of a Secret. */
export function secretName(name: string, value: string): string {
  if (nameProblem(value, SECRET) === undefined) return value;
  throw flagError(name, value, `a Secret's name must be ${describeNameRule(SECRET)}`);
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
    if (path === '') throw flagError(name, value, 'give PATH=KEY, such as clusters/aws.yml=aws.yml');
    if (problem !== undefined) throw flagError(name, value, problem.message);
    if (Object.hasOwn(files, path)) throw flagError(name, value, 'this path was given before');
    files[path] = key;
  }
  return files;
}

/** The reference of a container image. */
export function image(name: string, value: string): string {
  if (isImageReference(value)) return value;
  throw flagError(name, value, 'it is no image: give one such as registry.example.com/name:tag, without spaces');
}

/** The path of a directory, which need not exist yet. */
export function folder(name: string, value: string): string {
  if (value !== '') return value;
  throw flagError(name, value, 'it is empty: name a folder, or leave the flag out');
}

/** The error for an invalid value of a flag. */
export function flagError(name: string, value: string, why: string): UsageError {
  return new UsageError(`--${name}=${value}: ${why}`);
}
