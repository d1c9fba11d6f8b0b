import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '../local/assets/errors';
import { version } from '../package.json';

import { nodeBundle, operatorOptions } from './bundle/options';
import { compile, sourcesIn } from './compile';
import { CliError } from './errors';
import { kindredFolder, programName, type Project, type ProjectOperator } from './project';

/** An operator's program. */
export interface OperatorBundle {
  /** In the project's node_modules/.cache. */
  readonly file: string;
  /** Its text. */
  readonly code: string;
  /** The project's own files that it was made of, as absolute paths. */
  readonly sources: readonly string[];
}

/**
 * Bundles an operator of a project into one file that needs nothing but Node.js.
 *
 * @throws CliError when a source does not compile, or kinds have effects and no program executes them
 */
export async function bundleOperator(project: Project, operator: ProjectOperator): Promise<OperatorBundle> {
  const outfile = path.join(project.root, 'node_modules/.cache/kindred', `${programName(project, operator)}.cjs`);
  const entry = operator.program ?? { contents: programText(operator), resolveDir: project.root };
  const { complete, sources } = await usedByProject(project.root, entry);
  const { outputFiles = [] } = await compile({
    ...nodeBundle,
    ...operatorOptions({ kindred: kindredFolder, complete, strict: false }),
    write: false,
    absWorkingDir: project.root,
    ...(typeof entry === 'string' ? { entryPoints: [entry] } : { stdin: entry }),
    outfile,
    alias: libraryEntries,
    define: { 'process.env.KINDRED_VERSION': JSON.stringify(version) },
  });
  try {
    for (const { path: file, contents } of outputFiles) await writeAtomically(file, contents);
  } catch (error) {
    throw new CliError(`the operator cannot be written to ${outfile}: ${messageOf(error)}`, { cause: error });
  }
  const code = outputFiles.find(({ path: file }) => file === outfile)?.text ?? '';
  return { file: outfile, code, sources };
}

/**
 * What the project's own files are, and the packages of which Kindred uses a part and these something too: nothing of such a
 * package is left out.
 *
 * @throws CliError when a source does not compile
 */
async function usedByProject(
  root: string,
  entry: string | { readonly contents: string; readonly resolveDir: string },
): Promise<{ readonly complete: ReadonlySet<string>; readonly sources: readonly string[] }> {
  const { metafile } = await compile({
    ...{ bundle: true, write: false, metafile: true, platform: 'node', format: 'cjs', packages: 'external' },
    ...(typeof entry === 'string' ? { entryPoints: [entry] } : { stdin: { ...entry } }),
    absWorkingDir: root,
  });
  const own = Object.entries(metafile?.inputs ?? {}).filter(
    ([input]) => !path.resolve(root, input).startsWith(kindredFolder + path.sep),
  );
  const imported = own.flatMap(([, { imports }]) => imports.map((one) => one.path));
  const complete = PARTLY_USED.filter((name) => imported.some((one) => one === name || one.startsWith(`${name}/`)));
  return { complete: new Set(complete), sources: sourcesIn(metafile, root) };
}

/** Packages of which an operator's bundle has a part only. */
const PARTLY_USED = ['@kubernetes/client-node', 'undici', 'prom-client'];

/** Another command that runs at the same time finds the former file or this one, never half of one. */
async function writeAtomically(file: string, contents: Uint8Array): Promise<void> {
  const draft = `${file}.${process.pid}`;
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(draft, contents);
  await rename(draft, file);
}

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
