import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import { CliError } from '../errors';
import { runPulumi } from './pulumi-cli';
import type { PulumiCli, PulumiRun } from './pulumi-cli';

/** What to install with Pulumi, and where. */
export interface PulumiInstallOptions {
  readonly pulumi: PulumiCli;
  /** The checkout, with the program. */
  readonly checkout: string;
  /** For the project, its state and its passphrase; whoever made the folder removes it. */
  readonly folder: string;
  /** File of the kubeconfig. */
  readonly kubeconfig: string;
  /** Values of the stack's configuration, without secrets. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
}

const STACK = 'local';

/**
 * Installs the platform by the stack's own program, on a file backend in a folder of ours.
 *
 * Guarantees: the kubeconfig goes over stdin, and the passphrase in a file of mode 0600: neither stands in arguments, environment or log.
 *
 * @returns how many resources were made
 * @throws CliError with what Pulumi said, when it fails
 */
export async function installByPulumi(options: PulumiInstallOptions): Promise<number> {
  const { folder, config, kubeconfig } = options;
  await writeProject(options);
  await run(options, ['stack', 'init', STACK, '--no-select']);
  await addConfig(path.join(folder, 'project', `Pulumi.${STACK}.yaml`), config);
  await run(
    options,
    ['config', 'set', '--secret', 'kindred:kubeconfig', '--stack', STACK],
    await readFile(kubeconfig, 'utf8'),
  );
  await run(options, ['up', '--yes', '--skip-preview', '--non-interactive', '--stack', STACK]);
  const { stdout } = await run(options, ['stack', 'history', '--json', '--page-size', '1', '--stack', STACK]);
  const [last] = JSON.parse(stdout) as readonly { readonly resourceChanges?: { readonly create?: number } }[];
  return last?.resourceChanges?.create ?? 0;
}

async function writeProject({ folder, checkout }: PulumiInstallOptions): Promise<void> {
  for (const part of ['project', 'state', 'tmp'])
    await mkdir(path.join(folder, part), { recursive: true, mode: 0o700 });
  const project = parse(await readFile(path.join(checkout, 'Pulumi.yaml'), 'utf8')) as Readonly<
    Record<string, unknown>
  >;
  // A copy, so that nothing is written into the checkout; the program stays where its modules are.
  const main = path.join(checkout, String(project['main']));
  await writeFile(path.join(folder, 'project', 'Pulumi.yaml'), stringify({ ...project, main }));
  await writeFile(path.join(folder, 'passphrase'), randomBytes(32).toString('hex'), { mode: 0o600 });
}

/** Adds to the file that `stack init` wrote, which holds the salt of the passphrase. */
async function addConfig(file: string, config: Readonly<Record<string, unknown>>): Promise<void> {
  const written = parse(await readFile(file, 'utf8')) as Readonly<Record<string, unknown>>;
  const values = Object.entries(config).map(([key, value]) => [`kindred:${key}`, value] as const);
  await writeFile(file, stringify({ ...written, config: Object.fromEntries(values) }));
}

async function run(
  { pulumi, folder, signal }: PulumiInstallOptions,
  args: readonly string[],
  input?: string,
): Promise<PulumiRun> {
  const result = await runPulumi(pulumi.command, args, {
    cwd: path.join(folder, 'project'),
    env: environment(folder),
    signal,
    ...(input === undefined ? {} : { input }),
  });
  if (result.code === 0) return result;
  const said = result.text.trimEnd().split('\n').slice(-25).join('\n');
  throw new CliError(`pulumi ${args.slice(0, 2).join(' ')} failed:\n${said}`);
}

/** Where somebody's own stacks and settings would come in. */
const foreign = ['PULUMI_CONFIG_PASSPHRASE', 'PULUMI_STACK', 'PULUMI_ACCESS_TOKEN', 'KUBECONFIG'];

function environment(folder: string): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !foreign.includes(name));
  return {
    ...Object.fromEntries(own),
    PULUMI_BACKEND_URL: `file://${path.join(folder, 'state')}`,
    PULUMI_CONFIG_PASSPHRASE_FILE: path.join(folder, 'passphrase'),
    PULUMI_SKIP_UPDATE_CHECK: 'true',
    // The provider leaves copies of the kubeconfig there.
    TMPDIR: path.join(folder, 'tmp'),
    NO_COLOR: '1',
  };
}
