import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const root = join(__dirname, '..', '..', '..');
const run = promisify(execFile);

/** A project of somebody else that has the package installed, as `npm pack` makes it. */
export class Consumer {
  private constructor(
    readonly folder: string,
    /** The files of the package. */
    readonly files: readonly string[],
    private readonly stage: string,
  ) {}

  /** Packs the package, and installs it with npm next to some files: a path of this repository, or name and text of each. */
  static async of(source: string | Readonly<Record<string, string>>): Promise<Consumer> {
    const stage = mkdtempSync(join(tmpdir(), 'kindred-package-'));
    const folder = mkdtempSync(join(tmpdir(), 'kindred-consumer-'));
    if (typeof source === 'string') cpSync(join(root, source), folder, { recursive: true, filter: isSource });
    else for (const [name, text] of Object.entries(source)) writeFileSync(join(folder, name), text);
    const { file, files } = await packKindred(stage);
    const consumer = new Consumer(folder, files, stage);
    await consumer.npm('install', '--prefer-offline', '--ignore-scripts', file);
    return consumer;
  }

  /** Runs a script of Node in the folder. @returns what it printed */
  async node(...args: readonly string[]): Promise<string> {
    return output(process.execPath, args, this.folder);
  }

  /** Runs the project's own TypeScript compiler. */
  async tsc(...args: readonly string[]): Promise<string> {
    return this.node(join('node_modules', 'typescript', 'bin', 'tsc'), ...args);
  }

  /** Runs the package's command, as `npx kindred` does. @returns what it printed on stdout */
  async kindred(...args: readonly string[]): Promise<string> {
    return this.node(join('node_modules', '.bin', 'kindred'), ...args);
  }

  private async npm(...args: readonly string[]): Promise<string> {
    return output('npm', [...args, '--no-audit', '--no-fund'], this.folder);
  }

  remove(): void {
    for (const folder of [this.folder, this.stage]) rmSync(folder, { recursive: true, force: true });
  }
}

/** A packed package. */
interface Packed {
  /** The tarball. */
  readonly file: string;
  /** What is in it. */
  readonly files: readonly string[];
}

/** Builds and packs apart from the working tree, so that several test files may do so at once. */
export async function packKindred(stage: string): Promise<Packed> {
  await output(process.execPath, ['node_modules/tsx/dist/cli.mjs', 'scripts/build.ts', join(stage, 'dist')], root);
  await output(process.execPath, ['scripts/build-library.mjs', join(stage, 'dist', 'library')], root);
  const sources = ['constructs', 'operator', 'provision', 'provisioner', 'cli', 'crds', 'local', 'test', 'docs'];
  for (const path of ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', ...sources]) {
    if (existsSync(join(root, path)))
      cpSync(join(root, path), join(stage, path), { recursive: true, filter: isSource });
  }
  const [packed] = JSON.parse(await output('npm', ['pack', '--json', '--ignore-scripts'], stage)) as readonly {
    readonly filename: string;
    readonly files: readonly { readonly path: string }[];
  }[];
  if (packed === undefined) throw new Error('npm packed nothing');
  return { file: join(stage, packed.filename), files: packed.files.map(({ path }) => path) };
}

function isSource(path: string): boolean {
  return !/\/(node_modules|dist|run|\.cache)(\/|$)/.test(path.slice(root.length));
}

async function output(command: string, args: readonly string[], cwd: string): Promise<string> {
  try {
    return (await run(command, [...args], { cwd, maxBuffer: 1 << 26 })).stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error });
  }
}
