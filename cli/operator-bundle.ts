import { existsSync, readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { BuildOptions, Metafile, Plugin, StdinOptions } from 'esbuild';
import { messageOf } from '../local/assets/errors';
import { version } from '../package.json';
import { nodeBundle, operatorOptions } from './bundle/options';
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
    ...{ metafile: true, plugins: [packagesOutside(preloaded)], legalComments: 'none' },
    ...entryOf(project, operator),
  });
  const isOwn = project.root === kindredFolder ? () => true : (source: string) => !isKindreds(source);
  return {
    ...{ file: outfile, code, packages: [...preloaded] },
    sources: sourcesIn(metafile, project.root).filter(isOwn),
  };
}

const isKindreds = (file: string): boolean => file.startsWith(kindredFolder + path.sep);

/** The packages that Kindred and its users share, which take long to load. */
const PEERS = ['cdk8s', 'cdk8s-plus-27', 'constructs', 'zod'];

/**
 * Leaves packages outside, which are required from the file that imports them, so that Kindred's sources have the packages that Kindred
 * has. Bundled are what is no package but linked into node_modules, such as a workspace's, and of the project's packages those
 * that are ES modules: `require` does not give what their importers expect.
 *
 * @param preloaded - receives what may be loaded before the project's own code runs
 */
function packagesOutside(preloaded: Set<string>): Plugin {
  return {
    name: 'packages-outside',
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, async ({ path: module, importer, resolveDir, kind, pluginData }) => {
        const isOther =
          kind === 'entry-point' || isBuiltin(module) || path.isAbsolute(module) || module in libraryEntries;
        if (isOther || pluginData === asked) return undefined;
        if (isKindreds(importer)) {
          const file = ownFiles.get(module) ?? requiredFile(module, kindredFolder);
          if (file === undefined) return undefined;
          ownFiles.set(module, file);
          preloaded.add(file);
          return { path: file, external: true };
        }
        const found = await build.resolve(module, { importer, resolveDir, kind, pluginData: asked });
        if (found.errors.length > 0 || !isInPackage(found.path)) return undefined;
        const file = requiredFile(module, resolveDir);
        if (file === undefined || !isCommonJs(file)) return undefined;
        if (PEERS.some((name) => module === name || module.startsWith(`${name}/`))) preloaded.add(file);
        return { path: file, external: true };
      });
    },
  };
}

/** What Kindred's sources require, by name. */
const ownFiles = new Map<string, string>();

/** Marks the questions of `packagesOutside` to esbuild. */
const asked = Symbol('asked');

/** The real path of a module as `require` finds it; undefined: it finds none. */
function requiredFile(module: string, folder: string): string | undefined {
  try {
    return createRequire(path.join(folder, 'importer.js')).resolve(module);
  } catch {
    // It is for `import` alone.
    return undefined;
  }
}

const isInPackage = (file: string): boolean => file.includes(`${path.sep}node_modules${path.sep}`);

/** Whether Node.js takes a file for what `require` is made for; not so TypeScript. */
function isCommonJs(file: string): boolean {
  if (!file.endsWith('.js')) return /\.(cjs|json|node)$/.test(file);
  for (let folder = path.dirname(file); folder !== path.dirname(folder); folder = path.dirname(folder)) {
    const manifest = path.join(folder, 'package.json');
    if (existsSync(manifest))
      return (JSON.parse(readFileSync(manifest, 'utf8')) as { type?: string }).type !== 'module';
  }
  return true;
}

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
