import { spawn } from 'node:child_process';
import { codeOf } from '../errors';

/** How a command line tool ended. */
export interface ToolResult {
  /** The exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where and how to run a tool. */
export interface ToolOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Text for its stdin; without it, stdin is empty. */
  readonly input?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a tool to its end; a failing exit code is a result, not an error.
 *
 * @returns undefined when there is no such tool
 * @throws what spawn throws otherwise, and the abort reason when the signal fires
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
    // A tool may end without reading its input; how it ended says more than the broken pipe.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}
