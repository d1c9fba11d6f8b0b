import path from 'node:path';
import { build, type BuildFailure, type BuildOptions, type BuildResult, type Message, type Metafile } from 'esbuild';
import { CliError } from './errors';

/**
 * Runs esbuild.
 *
 * @throws CliError with file, line and column of the first mistake in the sources
 */
export async function compile(options: BuildOptions): Promise<BuildResult> {
  try {
    const result = await build({ ...options, logLevel: 'silent' });
    // Programs are CommonJS, in which it is empty; what it leads to would not be in an image either.
    const unmet = result.warnings.find(
      ({ id, location }) => id === 'empty-import-meta' && !/(^|\/)node_modules\//.test(location?.file ?? ''),
    );
    if (unmet === undefined) return result;
    throw new CliError(
      `${problemOf({ ...unmet, text: 'import.meta is not there' })}. Import the file that it leads to instead.`,
    );
  } catch (error) {
    const { errors = [] } = error as Partial<BuildFailure>;
    const [first] = errors;
    if (first === undefined) throw error;
    const more = errors.length === 1 ? '' : ` (and ${errors.length - 1} more)`;
    const files = errors.flatMap(({ location }) =>
      location === null ? [] : [path.resolve(options.absWorkingDir ?? '.', location.file)],
    );
    throw new CliError(`${problemOf(first)}${more}`, { cause: error, files });
  }
}

/** The files of a project that went into a bundle, as absolute paths, without those of packages. */
export function sourcesIn(metafile: Metafile | undefined, root: string): readonly string[] {
  return Object.keys(metafile?.inputs ?? {})
    .filter((input) => !/(^|\/)node_modules\/|^<stdin>$|^[a-z]+:/.test(input))
    .map((input) => path.resolve(root, input));
}

/** What is wrong with a source, and where: `website.ts:12:3: Expected ";" but found "x"`. */
function problemOf({ text, location }: Message): string {
  if (location === null) return text;
  return `${location.file}:${location.line}:${location.column + 1}: ${text}`;
}
