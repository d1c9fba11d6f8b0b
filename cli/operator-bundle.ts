import { existsSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { version } from '../package.json';

import { nodeBundle, operatorOptions } from './bundle/options';
import { compile } from './compile';
import { CliError } from './errors';
import { kindredFolder, type Project, type ProjectOperator } from './project';

/** The programs that are bundled with the command. */
export type Program = 'operator' | 'provisioner';

/**
 * The path of a program's bundle: beside this bundle, or in the checkout's dist/.
 *
 * @throws CliError when it has not been built
 */
export function operatorBundle(program: Program = 'operator'): string {
  const candidates = [path.join(__dirname, `${program}.cjs`), path.join(__dirname, '..', 'dist', `${program}.cjs`)];
  const found = candidates.find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new CliError(`the ${program} is not built: there is no ${candidates[0] ?? ''}. Run: npm run build`);
}

/**
 * Bundles an operator of a project into one file that needs nothing but Node.js.
 *
 * @returns the file, in the project's node_modules/.cache
 * @throws CliError when a source does not compile, or kinds have effects and no program executes them
 */
export async function bundleOperator(project: Project, operator: ProjectOperator): Promise<string> {
  const outfile = path.join(project.root, 'node_modules/.cache/kindred', `${operator.name}.cjs`);
  const entry = operator.program ?? { contents: programText(operator), resolveDir: project.root };
  await compile({
    ...nodeBundle,
    ...operatorOptions({ kindred: kindredFolder, strict: false }),
    absWorkingDir: project.root,
    ...(typeof entry === 'string' ? { entryPoints: [entry] } : { stdin: entry }),
    outfile,
    alias: libraryEntries,
    define: { 'process.env.KINDRED_VERSION': JSON.stringify(version) },
  });
  return outfile;
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
    `main({ name: ${JSON.stringify(name)}, kinds: [${loaded.map((one) => `file${files.indexOf(one.file)}.${one.name}`).join(', ')}] });`,
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
