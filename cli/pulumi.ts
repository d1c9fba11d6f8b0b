import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import { codeOf } from '../local/assets/errors';
import { findProgram } from '../local/assets/process';
import { CliError } from './errors';
import type { Project } from './project';

/** A Pulumi CLI that works, with the plugins that the stack needs. */
interface PulumiCli {
  /** The program, and its first arguments. */
  readonly command: readonly [string, ...string[]];
  readonly version: string;
}

/** Why no Pulumi can install the platform. */
interface PulumiUnavailable {
  /** For the user; one clause. */
  readonly why: string;
}

/** Timeout of `pulumi version`, in milliseconds; npm's package downloads its binaries at the first run. */
const versionTimeoutMs = 20_000;
/** Timeout of the installation of a plugin, which may have to be downloaded, in milliseconds. */
const pluginTimeoutMs = 60_000;
/** Looks for a Pulumi that can install a project's stack: on PATH, then npm's package `pulumi` if it is installed. */
export async function findPulumi(
  { root: folder, pulumi }: Pick<Project, 'root' | 'pulumi'>,
  signal: AbortSignal,
): Promise<PulumiCli | PulumiUnavailable> {
  // Another stack is none of our business: it might make anything, with whatever credentials there are.
  if (!pulumi) return { why: 'package.json does not say that a Pulumi program of the project installs this' };
  const candidates: (readonly [string, ...string[]])[] = [];
  if (findProgram('pulumi') !== undefined) candidates.push(['pulumi']);
  const fromNpm = npmPulumi(folder);
  if (fromNpm !== undefined) candidates.push([process.execPath, fromNpm]);
  if (candidates.length === 0) return { why: 'there is no pulumi on PATH' };
  const reasons: string[] = [];
  for (const command of candidates) {
    const found = await tryPulumi(command, folder, signal);
    if ('version' in found) return found;
    reasons.push(found.why);
  }
  return { why: reasons.join('; ') };
}

async function tryPulumi(
  command: readonly [string, ...string[]],
  cwd: string,
  signal: AbortSignal,
): Promise<PulumiCli | PulumiUnavailable> {
  const answer = await runPulumi(command, ['version'], { cwd, signal, timeoutMs: versionTimeoutMs });
  const version = /^v?(\d+\.\d+\.\d+\S*)\s*$/m.exec(answer.stdout)?.[1];
  if (answer.code !== 0 || version === undefined) {
    return { why: `${command.join(' ')} version failed, or did not answer within ${versionTimeoutMs / 1000} s` };
  }
  if (!version.startsWith('3.')) return { why: `${command.join(' ')} is version ${version}; 3 is needed` };
  for (const plugin of ['kubernetes', 'command']) {
    const why = await missingPlugin(command, plugin, { cwd, signal });
    if (why !== undefined) return { why };
  }
  return { command, version };
}

/** Installs a plugin if it is missing. @returns why it is not available, or undefined if it is */
async function missingPlugin(
  command: readonly [string, ...string[]],
  name: string,
  options: PulumiRunOptions,
): Promise<string | undefined> {
  if (findProgram(`pulumi-resource-${name}`) !== undefined) return undefined;
  const { version } = requireFrom(options.cwd)(`@pulumi/${name}/package.json`) as { readonly version: string };
  const args = ['plugin', 'install', 'resource', name, version];
  // This is quick if the plugin is installed.
  const { code } = await runPulumi(command, args, { ...options, timeoutMs: pluginTimeoutMs });
  return code === 0 ? undefined : `its plugin ${name} v${version} is not installed and cannot be downloaded`;
}

function npmPulumi(folder: string): string | undefined {
  try {
    return requireFrom(folder).resolve('pulumi/run.js');
  } catch (error) {
    const code = codeOf(error);
    if (code === 'MODULE_NOT_FOUND' || code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') return undefined;
    throw error;
  }
}

function requireFrom(folder: string): NodeJS.Require {
  return createRequire(path.join(folder, 'package.json'));
}

/** Result of a run of the CLI. */
interface PulumiRun {
  readonly code: number | null;
  readonly stdout: string;
  /** Both streams, in the order of arrival. */
  readonly text: string;
}

/** Options of {@link runPulumi}. */
interface PulumiRunOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Text for its stdin. @default none */
  readonly input?: string;
  readonly signal: AbortSignal;
  /** In milliseconds. @default no limit */
  readonly timeoutMs?: number;
}

/** How long an interrupted run may take to cancel, in milliseconds. */
const gracePeriodMs = 10_000;

/**
 * Runs the CLI to its end; a failing exit code is a result, not an error. After an abort or a timeout, this
 * returns once the CLI has ended.
 *
 * @throws the abort reason when the signal fires
 * @testonly
 */
export async function runPulumi(
  command: readonly [string, ...string[]],
  args: readonly string[],
  { cwd, env = process.env, input = '', signal, timeoutMs }: PulumiRunOptions,
): Promise<PulumiRun> {
  signal.throwIfAborted();
  const [program, ...before] = command;
  // In its own process group, so that Ctrl-C in a terminal reaches it only through this process.
  const child = spawn(program, [...before, ...args], { cwd, env, detached: true });
  let [stdout, text] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (data: string) => {
    stdout += data;
    text += data;
  });
  child.stderr.setEncoding('utf8').on('data', (data: string) => (text += data));
  // It may end without reading its input. Its exit says more than the broken pipe.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  let patience: NodeJS.Timeout | undefined;
  const stop = (): void => {
    child.kill('SIGINT');
    patience ??= setTimeout(() => child.kill('SIGKILL'), gracePeriodMs);
  };
  signal.addEventListener('abort', stop, { once: true });
  const timeout = timeoutMs === undefined ? undefined : setTimeout(stop, timeoutMs);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    signal.throwIfAborted();
    return { code, stdout, text };
  } finally {
    clearTimeout(timeout);
    clearTimeout(patience);
    signal.removeEventListener('abort', stop);
  }
}

/** What to install with Pulumi, and where. */
interface PulumiInstallOptions {
  readonly pulumi: PulumiCli;
  /** The checkout, with the program. */
  readonly checkout: string;
  /** Directory for the project, its state and its passphrase; the caller removes it. */
  readonly folder: string;
  /** File of the kubeconfig. */
  readonly kubeconfig: string;
  /** Values of the stack's configuration, without secrets. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
}

const STACK = 'local';

/**
 * Installs the platform with the project's Pulumi program, on a file backend in `folder`.
 *
 * Guarantees: the kubeconfig is passed over stdin, and the passphrase in a file of mode 0600, so that neither
 * is in arguments, environment or log.
 *
 * @returns how many resources were created
 * @throws CliError with Pulumi's output, when it fails
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

/** Adds to the file that `stack init` wrote, which contains the salt of the passphrase. */
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

/** Variables that would bring in the user's own stacks and settings. */
const REMOVED_VARIABLES = ['PULUMI_CONFIG_PASSPHRASE', 'PULUMI_STACK', 'PULUMI_ACCESS_TOKEN', 'KUBECONFIG'];

function environment(folder: string): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !REMOVED_VARIABLES.includes(name));
  return {
    ...Object.fromEntries(own),
    PULUMI_BACKEND_URL: `file://${path.join(folder, 'state')}`,
    PULUMI_CONFIG_PASSPHRASE_FILE: path.join(folder, 'passphrase'),
    PULUMI_SKIP_UPDATE_CHECK: 'true',
    // The provider leaves copies of the kubeconfig in it.
    TMPDIR: path.join(folder, 'tmp'),
    NO_COLOR: '1',
  };
}
