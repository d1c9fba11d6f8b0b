import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { codeOf } from '../../local/errors';
import { CliError } from '../errors';
import { onPath } from '../on-path';

/** A Pulumi CLI that works, with the plugins that the stack needs. */
export interface PulumiCli {
  /** The program, and what stands before its arguments. */
  readonly command: readonly [string, ...string[]];
  readonly version: string;
}

/** Why there is no Pulumi to install with, for people; one clause. */
export interface NoPulumi {
  readonly why: string;
}

/** How a run of the CLI ended. */
export interface PulumiRun {
  readonly code: number | null;
  readonly stdout: string;
  /** Both streams, as they came. */
  readonly text: string;
}

/** How to run it. */
export interface PulumiRunOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Text for its stdin. @default none */
  readonly input?: string;
  readonly signal: AbortSignal;
  /** In milliseconds. @default no limit */
  readonly timeoutMs?: number;
}

/** A CLI that answers at all answers in this time; npm's package downloads its binaries at the first run. */
const answerMs = 20_000;
/** A plugin that is not there is downloaded, where there is a network. */
const pluginMs = 60_000;
/** How long an interrupted run may take to cancel what it does. */
const patienceMs = 10_000;

/** The checkout, from its sources and from the bundle in dist/. */
export function checkoutFolder(): string {
  const candidates = [path.join(__dirname, '..'), path.join(__dirname, '..', '..')];
  const found = candidates.find((folder) => existsSync(path.join(folder, 'Pulumi.yaml')));
  if (found !== undefined) return found;
  throw new CliError(`there is no Pulumi.yaml in ${candidates.join(' nor ')}; run this from a checkout`);
}

/** Looks for a Pulumi that works: on PATH, then npm's package `pulumi` where it is installed. */
export async function findPulumi(folder: string, signal: AbortSignal): Promise<PulumiCli | NoPulumi> {
  const candidates: (readonly [string, ...string[]])[] = [];
  if (onPath('pulumi')) candidates.push(['pulumi']);
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
): Promise<PulumiCli | NoPulumi> {
  const answer = await runPulumi(command, ['version'], { cwd, signal, timeoutMs: answerMs });
  const version = /^v?(\d+\.\d+\.\d+\S*)\s*$/m.exec(answer.stdout)?.[1];
  if (answer.code !== 0 || version === undefined) {
    return { why: `${command.join(' ')} version failed, or did not answer within ${answerMs / 1000} s` };
  }
  if (!version.startsWith('3.')) return { why: `${command.join(' ')} is version ${version}; 3 is needed` };
  for (const plugin of ['kubernetes', 'command']) {
    const why = await missingPlugin(command, plugin, { cwd, signal });
    if (why !== undefined) return { why };
  }
  return { command, version };
}

/** Gets a plugin where it is missing. @returns why it cannot be had */
async function missingPlugin(
  command: readonly [string, ...string[]],
  name: string,
  options: PulumiRunOptions,
): Promise<string | undefined> {
  if (onPath(`pulumi-resource-${name}`)) return undefined;
  const { version } = requireFrom(options.cwd)(`@pulumi/${name}/package.json`) as { readonly version: string };
  const args = ['plugin', 'install', 'resource', name, version];
  // It looks first, and is quick where the plugin is installed.
  const { code } = await runPulumi(command, args, { ...options, timeoutMs: pluginMs });
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

/**
 * Runs the CLI to its end; a failing exit code is a result, not an error. One that was aborted, or took too long, has ended when this returns.
 *
 * @throws the abort reason when the signal fires
 */
export async function runPulumi(
  command: readonly [string, ...string[]],
  args: readonly string[],
  { cwd, env = process.env, input = '', signal, timeoutMs }: PulumiRunOptions,
): Promise<PulumiRun> {
  signal.throwIfAborted();
  const [program, ...before] = command;
  // In a group of its own, so that Ctrl-C in a terminal reaches it through us only.
  const child = spawn(program, [...before, ...args], { cwd, env, detached: true });
  let [stdout, text] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (data: string) => {
    stdout += data;
    text += data;
  });
  child.stderr.setEncoding('utf8').on('data', (data: string) => (text += data));
  // It may end without reading its input; how it ended says more than the broken pipe.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  let patience: NodeJS.Timeout | undefined;
  const stop = (): void => {
    child.kill('SIGINT');
    patience ??= setTimeout(() => child.kill('SIGKILL'), patienceMs);
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
