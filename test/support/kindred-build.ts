import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** What the command printed, and its exit code. */
export interface BuildResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs `kindred build`. Not synchronously: the servers that it asks may be in this process.
 *
 * @param cli the path of the built command
 */
export async function kindredBuild(
  cli: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
): Promise<BuildResult> {
  const child = spawn(process.execPath, [cli, 'build', ...args], {
    ...{ cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...output };
}
