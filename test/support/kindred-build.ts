import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { root } from './project-folder';

/** What the command printed, and its exit code. */
export interface BuildResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where `kindred build` runs. */
interface BuildOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** The project's folder. @default Kindred's own */
  readonly project?: string | undefined;
}

/** Runs `kindred build`. Not synchronously: the servers that it asks may be in this process. */
export async function kindredBuild(
  args: readonly string[],
  { cwd, env = {}, project = root }: BuildOptions,
): Promise<BuildResult> {
  const child = spawn(process.execPath, [join(root, 'dist/cli.cjs'), `--project=${project}`, 'build', ...args], {
    ...{ cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...output };
}
