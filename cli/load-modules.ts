import { createRequire, Module } from 'node:module';
import path from 'node:path';
import type { AnyKind } from '../constructs/kind/kind';
import { setProgramStacks } from '../constructs/kube/function-error';
import { codeOf, isError } from '../local/assets/errors';
import { libraryConstructs } from './bundle/library';
import { compile, sourcesIn } from './compile';
import { CliError } from './errors';

/** What a project loads into this process. */
interface LoadOptions {
  /** The project's folder. */
  readonly root: string;
  /** The modules as absolute paths, TypeScript or JavaScript. */
  readonly files: readonly string[];
  /** Kindred's own folder. */
  readonly kindred: string;
}

/** Modules of a project, loaded. */
interface LoadedModules {
  /** What each of the files exports. */
  readonly exports: ReadonlyMap<string, Exports>;
  /** The project's own files that were read, as absolute paths. */
  readonly sources: readonly string[];
}

/** What a module exports, by name. */
export type Exports = Readonly<Record<string, unknown>>;

/**
 * Loads modules of a project.
 *
 * They are compiled in memory, with the other files of the project that they import. Packages are left outside and
 * required from the project, so that its kinds have the same copy of cdk8s, zod and Kindred as this command.
 *
 * @throws CliError, with file and line, when a module does not compile or throws
 */
export async function loadModules({ root, files, kindred }: LoadOptions): Promise<LoadedModules> {
  const paths = files.map((file) => JSON.stringify(`./${path.relative(root, file).replaceAll(path.sep, '/')}`));
  const filename = bundleFile(root);
  const { outputFiles, metafile } = await compile({
    absWorkingDir: root,
    stdin: {
      contents: paths.map((from, i) => `export * as file${i} from ${from};`).join('\n'),
      resolveDir: root,
    },
    outfile: filename,
    ...{ bundle: true, platform: 'node', target: 'node20.19', format: 'cjs', packages: 'external' },
    ...{ sourcemap: 'inline', write: false, metafile: true },
    plugins: root === kindred ? [libraryConstructs(kindred, path.join(kindred, 'dist/library'))] : [],
  });
  const sources = sourcesIn(metafile, root);
  const loaded = evaluate(outputFiles?.[0]?.text ?? '', { root, filename, sources });
  return {
    exports: new Map(files.map((file, i) => [file, loaded[`file${i}`] ?? {}])),
    sources,
  };
}

/** A kind, and how it is reached from its module: `["Website"]`, or `["kinds"][0]` in a list. */
export interface LoadedKind {
  readonly kind: AnyKind;
  readonly file: string;
  readonly name: string;
}

/** How an export is reached from its module, whatever its name. */
const property = (name: string): string => `[${JSON.stringify(name)}]`;

/** The kinds that a module exports, each once: those of lists first, in their order. */
export function kindsIn(exported: Exports, file: string): readonly LoadedKind[] {
  const entries = Object.entries(exported);
  const inLists = entries.flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((one: unknown, i) => [`${property(name)}[${i}]`, one] as const) : [],
  );
  const alone = entries.map(([name, value]) => [property(name), value] as const);
  const found = [...inLists, ...alone].flatMap(([name, kind]) => (isKind(kind) ? [{ kind, file, name }] : []));
  return found.filter(({ kind }, i) => found.findIndex((other) => other.kind === kind) === i);
}

/**
 * The file that a bundle is taken for: it is nowhere on disk, and packages are looked for from there. Each has its own,
 * since Node.js finds source maps by file names.
 */
const bundleFile = (root: string): string => path.join(root, `.kindred-${++loads}.cjs`);

let loads = 0;

/** The module of each loaded kind: Node.js forgets the source map of a module that nothing refers to. */
const modules = new WeakMap<AnyKind, Module>();

/** What Node.js has for modules made of text, which its types leave out. */
interface TextModule extends Module {
  _compile(code: string, filename: string): void;
}

/** Runs the bundle. @returns what each module exports */
function evaluate(
  code: string,
  {
    root,
    filename,
    sources,
  }: { readonly root: string; readonly filename: string; readonly sources: readonly string[] },
): Readonly<Record<string, Exports>> {
  // Errors of the kinds name the line in the source, here and when children are rendered.
  process.setSourceMapsEnabled(true);
  setProgramStacks({ root, toSources: (stack) => stack });
  const paths = createRequire(filename).resolve.paths('kindred') ?? [];
  const module = Object.assign(new Module(filename), { filename, paths }) as TextModule;
  try {
    module._compile(code, filename);
  } catch (error) {
    throw new CliError(`${whereOf(error, root) ?? 'the kinds cannot be loaded'}: ${loadProblem(error)}`, {
      cause: error,
      files: sources,
    });
  }
  const exported = module.exports as Readonly<Record<string, Exports>>;
  for (const [file, one] of Object.entries(exported))
    for (const { kind } of kindsIn(one, file)) modules.set(kind, module);
  return exported;
}

/** The line of the project at which an error was thrown: `website.ts:12:3`. */
function whereOf(error: unknown, root: string): string | undefined {
  if (!isError(error)) return undefined;
  for (const [, at = '', position = ''] of (error.stack ?? '').matchAll(
    /\(?((?:file:\/\/)?\/[^():]*):(\d+:\d+)\)?$/gm,
  )) {
    const within = path.relative(root, at.replace(/^file:\/\//, ''));
    if (!/^\.\.|(^|[\\/])node_modules[\\/]|^\.kindred-\d+\.cjs$/.test(within)) return `${within}:${position}`;
  }
  return undefined;
}

function loadProblem(error: unknown): string {
  if (!isError(error)) return `it throws ${String(error)}`;
  const [, missing] = /^Cannot find (?:module|package) '([^']+)'/.exec(error.message) ?? [];
  if (missing !== undefined && /^(ERR_)?MODULE_NOT_FOUND$/.test(codeOf(error) ?? '')) {
    return `there is no package "${missing}". Run: npm install ${packageOf(missing)}`;
  }
  return error.message;
}

/** The package of a module: `@scope/name` of `@scope/name/file`. */
function packageOf(module: string): string {
  return module
    .split('/')
    .slice(0, module.startsWith('@') ? 2 : 1)
    .join('/');
}

/** Whether a value is what `defineKind` returns. */
function isKind(value: unknown): value is AnyKind {
  if (typeof value !== 'object' || value === null) return false;
  const { crdName, apiVersion, children, schema } = value as Partial<AnyKind>;
  return [crdName, apiVersion].every((text) => typeof text === 'string') && typeof children === 'function' && !!schema;
}
