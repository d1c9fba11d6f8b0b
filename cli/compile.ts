import { build, type BuildFailure, type BuildOptions, type BuildResult, type Message } from 'esbuild';
import { CliError } from './errors';

/**
 * Runs esbuild.
 *
 * @throws CliError with file, line and column of the first mistake in the sources
 */
export async function compile(options: BuildOptions): Promise<BuildResult> {
  try {
    return await build({ ...options, logLevel: 'silent' });
  } catch (error) {
    const { errors = [] } = error as Partial<BuildFailure>;
    const [first] = errors;
    if (first === undefined) throw error;
    const more = errors.length === 1 ? '' : ` (and ${errors.length - 1} more)`;
    throw new CliError(`${problemOf(first)}${more}`, { cause: error });
  }
}

/** What is wrong with a source, and where: `website.ts:12:3: Expected ";" but found "x"`. */
function problemOf({ text, location }: Message): string {
  if (location === null) return text;
  return `${location.file}:${location.line}:${location.column + 1}: ${text}`;
}
