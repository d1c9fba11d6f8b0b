import { createHash } from 'node:crypto';
import { base64, commandLine, stdinText, type LoginOptions, type NamedValue } from '../../../provision';

/**
 * How a task's script gets to a machine through a Command. When a Command fails, its provider puts the whole command line, all of stdout and all
 * of stderr into the error, in plain text. So the command line is short and the same for every task: it reads the script from the first line
 * of its stdin. And the script's stdout, which may hold outputs that are secret, is let through only when all went well; else the answer's
 * message alone goes to stderr.
 */

/** What the error of a failed Command and the machine's process list show: the task's name and 12 digits of what its script is. */
export function launcher(label: string, script: string): string {
  const digest = createHash('sha256').update(script).digest('hex').slice(0, 12);
  // Quotes, and what a login shell might read otherwise, never get into the line.
  const name = label.replace(/[^A-Za-z0-9_.:/-]/g, '_');
  return `sh -c 'IFS= read -r script; eval "$(printf %s "$script" | base64 -d)"' ${name}@${digest}`;
}

/** Picks the member `message` out of an answer: neither a quote nor a backslash, or a backslash with what it escapes, up to the end quote. */
const MESSAGE = String.raw`sed -n -E 's/.*"message":"(([^"\\]|\\.)*)".*/\1/p'`;

/** Undoes JSON's escapes as far as `printf %b` does not. */
const UNQUOTED = String.raw`sed 's/\\"/"/g'`;

/** Runs a command line, and shows of its stdout either all or, when it failed, the answer's message. */
function guarded(line: string): string {
  return [
    `answer=$(${line})`,
    'code=$?',
    `if [ "$code" -eq 0 ]; then printf '%s\\n' "$answer"; exit 0; fi`,
    `message=$(printf '%s\\n' "$answer" | tail -n 1 | ${MESSAGE} | ${UNQUOTED})`,
    `printf '%b\\n' "\${message:-the script ended with $code and gave no answer}" >&2`,
    'exit "$code"',
  ].join('\n');
}

/** What goes to the launcher's stdin: the script, then the values that it reads. */
export function launcherStdin(script: string, login: LoginOptions, values: readonly NamedValue[]): string {
  return `${base64(guarded(commandLine(script, login)))}\n${stdinText(values)}`;
}
