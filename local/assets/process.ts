import { execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { codeOf } from './errors';

/**
 * Identifies one process for good, which a pid does not, since pids are reused. Written into locks and run
 * directories, so that a later process can check whether the owner is alive.
 */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** When the process started, in the system's own format; compared, never parsed. */
  readonly started: string;
}

/** The identity of this process. */
export function ownIdentity(): ProcessIdentity {
  return { host: hostname(), pid: process.pid, started: startOf(process.pid) ?? 'unknown' };
}

/**
 * Whether the process is alive. A process on another host (a cache shared over the network) counts as alive.
 */
export function isAlive(identity: ProcessIdentity): boolean {
  if (identity.host !== hostname()) return true;
  const started = startOf(identity.pid);
  return started !== undefined && (identity.started === 'unknown' || started === identity.started);
}

/** Parses an identity from JSON; undefined when the text is not one (its owner died while writing it). */
export function parseIdentity(text: string): ProcessIdentity | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined; // not JSON: half written
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { host, pid, started } = value as Partial<Record<keyof ProcessIdentity, unknown>>;
  if (typeof host !== 'string' || typeof pid !== 'number' || typeof started !== 'string') return undefined;
  return { host, pid, started };
}

/** When a process started, or undefined when no process (or only a zombie) has that pid. */
function startOf(pid: number): string | undefined {
  return process.platform === 'linux' ? startFromProc(pid) : startFromPs(pid);
}

function startFromProc(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ESRCH') return undefined;
    throw error;
  }
  // The second field is the command in parentheses, which may contain anything; the fields after the last
  // parenthesis are plain.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state = ''] = fields;
  return state === 'Z' || state === 'X' ? undefined : fields[19];
}

function startFromPs(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return line === '' ? undefined : line;
  } catch (error) {
    // ps exits with 1 when no such process exists.
    if ((error as { status?: unknown }).status === 1) return undefined;
    throw error;
  }
}

/** How a command line tool ended. */
interface ToolResult {
  /** The exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of `runTool`. */
interface ToolOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Text for its stdin. @default empty */
  readonly input?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a tool to its end; a non-zero exit code is a result, not an error.
 *
 * @returns undefined when there is no such tool
 * @throws other errors of spawn, and the abort reason when the signal aborts
 */
export function runTool(
  command: string,
  args: readonly string[],
  options: ToolOptions = {},
): Promise<ToolResult | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: options.cwd, env: options.env, signal: options.signal });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.on('error', (error) => {
      if (codeOf(error) === 'ENOENT') resolve(undefined);
      else reject(error);
    });
    child.on('close', (code) => resolve({ code, stdout, stderr }));
    // A tool may end without reading its input; its exit code says more than the broken pipe.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}

/**
 * Where a program is that this process may execute.
 *
 * @param searchPath - folders in the form of PATH; an empty one, which to a shell is the current folder, is skipped.
 *   @default PATH
 * @returns undefined when no folder has it
 */
export function findProgram(name: string, searchPath = process.env['PATH'] ?? ''): string | undefined {
  const folders = searchPath.split(path.delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => path.join(folder, name)).find(isProgram);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false; // it does not exist, or this process may not execute it
  }
}
