import path from 'node:path';
import { parseArgs } from 'node:util';
import type { BuildOptions, Metafile, StdinOptions } from 'esbuild';
import { messageOf } from '../local/assets/errors';
import { version } from '../package.json';
import { nodeBundle, operatorOptions } from './bundle/options';
import { packagesOutside } from './bundle/packages-outside';
import { writeAtomically } from './bundle/write';
import { compile, sourcesIn } from './compile';
import { CliError } from './errors';
import { kindredFolder, programName, type Project, type ProjectOperator } from './project';

/**
 * Bundles an operator of a project into one file that needs nothing but Node.js.
 *
 * @returns the file, in the project's node_modules/.cache
 * @throws CliError when a source does not compile, or kinds have effects and no program executes them
 */
export async function bundleOperator(project: Project, operator: ProjectOperator): Promise<string> {
  const entry = entryOf(project, operator);
  const complete = await completePackages(project.root, entry);
  const options = operatorOptions({ kindred: kindredFolder, complete, strict: false });
  const outfile = cachedFile(project, `${programName(project, operator)}.cjs`);
  await write(project, { ...nodeBundle, ...options, ...entry, outfile });
  return outfile;
}

/** An operator's program that requires packages when it runs. */
export interface OperatorProgram {
  /** In the project's node_modules/.cache. */
  readonly file: string;
  /** Its text. */
  readonly code: string;
  /** The project's own files that it was made of, as absolute paths. */
  readonly sources: readonly string[];
  /** Modules of packages that it requires, and that may be loaded before its own code runs. */
  readonly packages: readonly string[];
}

/**
 * Compiles an operator of a project for this machine. It is the same program as that of `bundleOperator`, but made in a fraction of
 * the time: packages stay outside.
 *
 * @throws CliError as `bundleOperator`
 */
export async function compileOperator(project: Project, operator: ProjectOperator): Promise<OperatorProgram> {
  const outfile = cachedFile(project, `${programName(project, operator)}.dev.cjs`);
  const preloaded = new Set<string>();
  const { code, metafile } = await write(project, {
    ...{ ...nodeBundle, outfile },
    ...{
      metafile: true,
      plugins: [packagesOutside({ kindred: kindredFolder, bundled: Object.keys(libraryEntries), preloaded })],
      legalComments: 'none',
    },
    ...entryOf(project, operator),
  });
  const isOwn = project.root === kindredFolder ? () => true : (source: string) => !isKindreds(source);
  return {
    ...{ file: outfile, code, packages: [...preloaded] },
    sources: sourcesIn(metafile, project.root).filter(isOwn),
  };
}

const isKindreds = (file: string): boolean => file.startsWith(kindredFolder + path.sep);

/** What esbuild begins with. */
type Entry = { readonly entryPoints: string[] } | { readonly stdin: StdinOptions };

function entryOf({ root }: Project, operator: ProjectOperator): Entry {
  if (operator.program !== undefined) return { entryPoints: [operator.program] };
  return { stdin: { contents: programText(operator), resolveDir: root } };
}

const cachedFile = ({ root }: Project, name: string): string => path.join(root, 'node_modules/.cache/kindred', name);

async function write(
  { root }: Project,
  options: BuildOptions & { readonly outfile: string },
): Promise<{ readonly code: string; readonly metafile: Metafile | undefined }> {
  const { outfile } = options;
  const { outputFiles = [], metafile } = await compile({
    ...{ ...options, write: false, absWorkingDir: root },
    alias: libraryEntries,
    define: { 'process.env.KINDRED_VERSION': JSON.stringify(version) },
  });
  try {
    for (const output of outputFiles) await writeAtomically(output.path, output.contents);
  } catch (error) {
    throw new CliError(`the operator cannot be written to ${outfile}: ${messageOf(error)}`, { cause: error });
  }
  return { code: outputFiles.find((output) => output.path === outfile)?.text ?? '', metafile };
}

/**
 * The packages of which Kindred uses a part and the project's own files something too: nothing of such a package is left out.
 *
 * @throws CliError when a source does not compile
 */
async function completePackages(root: string, entry: Entry): Promise<ReadonlySet<string>> {
  const { metafile } = await compile({
    ...{ bundle: true, write: false, metafile: true, platform: 'node', format: 'cjs', packages: 'external' },
    ...{ ...entry, absWorkingDir: root },
  });
  const own = Object.entries(metafile?.inputs ?? {}).filter(([input]) => !isKindreds(path.resolve(root, input)));
  const imported = own.flatMap(([, { imports }]) => imports.map((one) => one.path));
  return new Set(PARTLY_USED.filter((name) => imported.some((one) => one === name || one.startsWith(`${name}/`))));
}

/** Packages of which an operator's bundle has a part only. */
const PARTLY_USED = ['@kubernetes/client-node', 'undici', 'prom-client'];

/** The library's entry points as sources, of which esbuild leaves out what an operator does not use. */
const libraryEntries = Object.fromEntries(
  ['constructs', 'provision', 'operator'].map((name) => [
    `kindred/${name}`,
    path.join(kindredFolder, name, 'index.ts'),
  ]),
);

/** The program that runs the kinds of an operator that has none of its own. */
function programText({ name, loaded }: ProjectOperator): string {
  const needing = loaded.find(({ kind }) => kind.effects.length > 0);
  if (needing !== undefined) {
    throw new CliError(
      `${needing.kind.kind} acts outside the Kubernetes API, and nothing says how. Write a program that gives main() of kindred/operator ` +
        `its "effects", and name it in package.json beside "kinds": "program": "operator.ts"`,
    );
  }
  const files = [...new Set(loaded.map(({ file }) => file))];
  return [
    "import { main } from 'kindred/operator';",
    ...files.map((file, i) => `import * as file${i} from ${JSON.stringify(file)};`),
    `main({ name: ${JSON.stringify(name)}, kinds: [${loaded.map((one) => `file${files.indexOf(one.file)}${one.name}`).join(', ')}] });`,
  ].join('\n');
}

/**
 * The operator of a project for a command line: the one that has the kinds of `--kinds`, else the first. The operator
 * itself reports what is wrong with the command line.
 */
export function operatorFor({ operators }: Project, args: readonly string[]): ProjectOperator {
  const { values } = parseArgs({ args: [...args], options: { kinds: { type: 'string' } }, strict: false });
  const names = typeof values.kinds === 'string' ? values.kinds.split(',').map((name) => name.trim()) : [];
  const found = operators.findLast(({ kinds }) => kinds.some(({ crdName }) => names.includes(crdName)));
  const chosen = found ?? operators[0];
  if (chosen === undefined) throw new Error('a project has at least one operator');
  return chosen;
}
