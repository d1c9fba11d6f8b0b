import type { Code } from '../../../bench/results';
import { runTool } from '../../../local/assets/run-tool';

/**
 * The state of the sources in a folder, as git tells it.
 *
 * @returns the commit `-` where git is missing or the folder is in no repository with a commit
 */
export async function codeIn(folder: string, signal: AbortSignal): Promise<Code> {
  // Without the locks it writes nothing, and stands in nobody's way.
  const git = async (...args: readonly string[]): Promise<string | undefined> => {
    const options = { cwd: folder, env: process.env, signal };
    const result = await runTool('git', ['--no-optional-locks', ...args], options);
    return result?.code === 0 ? result.stdout.trim() : undefined;
  };
  const commit = await git('rev-parse', '--short', 'HEAD');
  if (commit === undefined) return { commit: '-', dirty: false };
  return { commit, dirty: (await git('status', '--porcelain')) !== '' };
}
