import { createRequire, Module } from 'node:module';
import path from 'node:path';
import type { AnyKind } from '../constructs/kind/kind';
import { codeOf, isError } from '../local/assets/errors';

import { libraryConstructs } from './bundle/library';
import { compile } from './compile';
import { CliError } from './errors';

/** Where kinds are loaded from. */
interface LoadOptions {
  /** The project's folder. */
  readonly root: string;
  /** The modules that export the kinds, TypeScript or JavaScript. */
  readonly files: readonly string[];
  /** Kindred's own folder. */
  readonly kindred: string;
}

/** A kind, and the expression that names it in its module: `Website`, or `kinds[0]` of a list. */
export interface LoadedKind {
  readonly kind: AnyKind;
  readonly file: string;
  readonly name: string;
}

/**
 * Loads the kinds that modules export, each by itself or in a list; those of lists come first, in their order.
 *
 * The modules are compiled in memory, with the other files of the project that they import. Packages are left outside and
 * required from the project, so that the kinds have the same copy of cdk8s, zod and Kindred as this command.
 *
 * @throws CliError, with file and line, when a module does not compile, throws, or exports no kind
 */
export async function loadKinds({ root, files, kindred }: LoadOptions): Promise<readonly LoadedKind[]> {
  const names = files.map((file) => path.relative(root, file));
  const modules = evaluate(await bundle({ root, names, kindred }), root);
  const loaded = new Map<AnyKind, LoadedKind>();
  for (const [i, name] of names.entries()) {
    const found = kindsIn(modules[`file${i}`] ?? {}, files[i] ?? name);
    if (found.length === 0) {
      throw new CliError(
        `${name} exports no kind. Export what defineKind returns: export const Website = defineKind({ ... })`,
      );
    }
    for (const one of found) if (!loaded.has(one.kind)) loaded.set(one.kind, one);
  }
  return [...loaded.values()];
}

function kindsIn(exported: Exports, file: string): readonly LoadedKind[] {
  const entries = Object.entries(exported);
  const inLists = entries.flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((one: unknown, i) => [`${name}[${i}]`, one] as const) : [],
  );
  return [...inLists, ...entries].flatMap(([name, kind]) => (isKind(kind) ? [{ kind, file, name }] : []));
}

async function bundle({
  root,
  names,
  kindred,
}: Pick<LoadOptions, 'root' | 'kindred'> & { readonly names: readonly string[] }): Promise<string> {
  const { outputFiles } = await compile({
    absWorkingDir: root,
    stdin: {
      contents: names.map((name, i) => `export * as file${i} from ${JSON.stringify(`./${name}`)};`).join('\n'),
      resolveDir: root,
    },
    outfile: bundleFile(root),
    ...{ bundle: true, platform: 'node', target: 'node20.19', format: 'cjs', packages: 'external' },
    ...{ sourcemap: 'inline', write: false },
    plugins: root === kindred ? [libraryConstructs(kindred, path.join(kindred, 'dist/library'))] : [],
  });
  return outputFiles?.[0]?.text ?? '';
}

/** The file that the bundle is taken for: it is nowhere on disk, and packages are looked for from there. */
const bundleFile = (root: string): string => path.join(root, '.kindred.cjs');

/** What Node.js has for modules made of text, which its types leave out. */
interface TextModule extends Module {
  _compile(code: string, filename: string): void;
}

type Exports = Readonly<Record<string, unknown>>;

/** Runs the bundle. @returns what each module exports */
function evaluate(code: string, root: string): Readonly<Record<string, Exports>> {
  const filename = bundleFile(root);
  // Errors of the kinds name the line in the source, here and when children are rendered.
  process.setSourceMapsEnabled(true);
  const paths = createRequire(filename).resolve.paths('kindred') ?? [];
  const module = Object.assign(new Module(filename), { filename, paths }) as TextModule;
  try {
    module._compile(code, filename);
  } catch (error) {
    throw new CliError(`${whereOf(error, root) ?? 'the kinds cannot be loaded'}: ${loadProblem(error)}`, {
      cause: error,
    });
  }
  return module.exports as Readonly<Record<string, Exports>>;
}

/** The line of the project at which an error was thrown: `website.ts:12:3`. */
function whereOf(error: unknown, root: string): string | undefined {
  if (!isError(error)) return undefined;
  for (const [, at = '', position = ''] of (error.stack ?? '').matchAll(
    /\(?((?:file:\/\/)?\/[^():]*):(\d+:\d+)\)?$/gm,
  )) {
    const within = path.relative(root, at.replace(/^file:\/\//, ''));
    if (!/^\.\.|(^|[\\/])node_modules[\\/]|^\.kindred\.cjs$/.test(within)) return `${within}:${position}`;
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
