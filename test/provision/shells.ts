import { spawn, spawnSync } from 'node:child_process';
import type { SpawnSyncReturns } from 'node:child_process';
import { parseScriptResult, encodeStdin, type NamedValue } from '../../provision/task/script-io';
import type { ScriptResult } from '../../provision/task/task';

/** The shells that scripts must run under. Those that are not installed are named in the output of the tests that use them. */
const candidates: readonly (readonly [name: string, command: readonly string[]])[] = [
  ['dash', ['dash']],
  ['bash', ['bash']],
  ['BusyBox ash', ['busybox', 'ash']],
];

/** Shells that are installed here, by name. */
export const shells = candidates.filter(
  ([, [program = '', ...args]]) => spawnSync(program, [...args, '-c', ':']).status === 0,
);

/** Shells that are not. */
export const missingShells = candidates.filter((shell) => !shells.includes(shell)).map(([name]) => name);

/** What came of a script. */
export interface Run {
  readonly answer: ScriptResult;
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Without a locale: bash complains on stderr of one that is not installed, as that of whoever came by SSH may not be. */
function withoutLocale(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(LANG|LANGUAGE|LC_[A-Z]+)$/.test(name)));
}

/** Runs a script as a machine would: the script is given, values come on stdin. */
export function runScript(
  shell: readonly string[],
  script: string,
  values: readonly NamedValue[] = [],
  env: NodeJS.ProcessEnv = process.env,
): Run {
  const [program = 'sh', ...args] = shell;
  const result: SpawnSyncReturns<string> = spawnSync(program, [...args, '-c', script], {
    input: encodeStdin(values),
    encoding: 'utf8',
    env: withoutLocale(env),
    timeout: 60_000,
  });
  return {
    answer: parseScriptResult(result.stdout),
    code: result.status,
    stdout: result.stdout,
    stderr: result.stderr,
  };
}

/** Starts a script, for tests that do something to it meanwhile. */
export function startScript(shell: readonly string[], script: string): ReturnType<typeof spawn> {
  const [program = 'sh', ...args] = shell;
  return spawn(program, [...args, '-c', script], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: withoutLocale(process.env),
  });
}
