/**
 * What goes to a script (command line, stdin), what it returns (result, outputs), and text that is safe to
 * show.
 */

import type { ScriptResult, ValueSource } from './task';

/** A value for a script, with its name. */
export interface NamedValue {
  readonly name: string;
  readonly value: string;
}

/**
 * The stdin of a script: one line per value, with its name, a space, and the base64 of its UTF-8.
 *
 * @throws TypeError for a name that is no shell variable, or occurs twice
 */
export function encodeStdin(values: readonly NamedValue[]): string {
  const names = values.map(({ name }) => name);
  const wrong = names.find((name, i) => !NAME.test(name) || names.indexOf(name) !== i);
  if (wrong !== undefined) throw new TypeError(`stdin value "${wrong}": names match ${NAME.source} and are unique`);
  return values.map(({ name, value }) => `${name} ${base64(value)}\n`).join('');
}

const NAME = /^[a-z][a-z0-9_]*$/;

/** The base64 of a text's UTF-8. */
export function base64(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let characters = '';
  // In chunks, since a call takes about 100,000 arguments at most.
  for (let i = 0; i < bytes.length; i += 8192) characters += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(characters);
}

/** A source whose value must be looked up. */
export type ExternalSource = Extract<ValueSource, { secret: unknown } | { output: unknown } | { file: unknown }>;

/**
 * What to look up before a source can be rendered, in the order in which {@link renderSource} requests it.
 */
export function externalSources(source: ValueSource): readonly ExternalSource[] {
  if ('text' in source) return [];
  if (!('template' in source)) return [source];
  return source.template.flatMap((part) => (typeof part === 'string' ? [] : externalSources(part)));
}

/** The text of a source. `lookup` returns the value of an external source; its errors are passed on. */
export function renderSource(source: ValueSource, lookup: (leaf: ExternalSource) => string): string {
  if ('text' in source) return source.text;
  if (!('template' in source)) return lookup(source);
  return source.template
    .map((part) => (typeof part === 'string' ? part : quoteYaml(renderSource(part, lookup))))
    .join('');
}

/**
 * Characters that JSON allows in a string, but YAML 1.2 does not allow or reads as a line break.
 * Source: YAML 1.2, 5.1 (printable characters) and 5.4 (line breaks); YAML 1.1 for the last two.
 */
const UNSAFE_IN_YAML = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** A text as a JSON string that YAML reads as the same text. */
export function quoteYaml(text: string): string {
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(text).replace(UNSAFE_IN_YAML, escape);
}

/**
 * The longest single argument that Linux passes to a program, in bytes: MAX_ARG_STRLEN, less some room.
 * Source: execve(2).
 */
const MAX_LENGTH = 128 * 1024 - 1024;

/** How {@link sshCommand} runs a script. */
export interface LoginOptions {
  /** The user that logs in. */
  readonly user: string;
  /** Run as that user, not as root. @default false */
  readonly asUser?: boolean;
}

/**
 * The command that sshd passes to the user's login shell: it runs a script with `sh` as root, through
 * `sudo -n` unless the user is root or `asUser` is set. Its stdin is the script's.
 *
 * The command is `sh -c '...'`, with the script as base64 and no quote, backslash or `!` between the quotes,
 * so sh, bash, dash, zsh, ksh, fish and csh all read it alike. It contains no secret, because scripts contain
 * none.
 *
 * @throws RangeError when the script is longer than Linux accepts
 */
export function sshCommand(script: string, { user, asUser = false }: LoginOptions): string {
  const started = asUser || user === 'root' ? script : withSudo(script, user);
  const line = `sh -c 'eval "$(printf %s ${base64(started)} | base64 -d)"'`;
  if (line.length > MAX_LENGTH) {
    throw new RangeError(`the script has ${script.length} characters, too many for one command line; split the task`);
  }
  return line;
}

/** A script that runs another as root, or reports that the user may not become root. */
function withSudo(script: string, user: string): string {
  const name = user.replace(/[^A-Za-z0-9_.-]/g, '?');
  const refusal = {
    ok: false,
    changed: false,
    reason: 'PreflightFailed',
    message:
      `user ${name} may not become root: "sudo -n true" fails. Allow it without a password (${name} ALL=(ALL) NOPASSWD: ALL ` +
      'in a file of /etc/sudoers.d), or log in as root',
  };
  return [
    `script=${singleQuote(script)}`,
    'if [ "$(id -u)" -eq 0 ]; then exec sh -c "$script"; fi',
    'if sudo -n true </dev/null >/dev/null 2>&1; then exec sudo -n sh -c "$script"; fi',
    `printf '%s\\n' ${singleQuote(JSON.stringify(refusal))}`,
    'exit 1',
    '',
  ].join('\n');
}

/** A text in POSIX single quotes. */
export function singleQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * The result of a script: the last line of its stdout that is not empty. Lines before it, such as a login
 * banner, are ignored. The message is cut and made printable, and an invalid reason is dropped: otherwise
 * anyone with control of the machine could write anything into records, events and status.
 *
 * @throws NoResultError when that line is not a result
 */
export function parseScriptResult(stdout: string): ScriptResult {
  const line = stdout.split(/\r?\n/).findLast((text) => text.trim() !== '');
  if (line === undefined) throw new NoResultError('its stdout is empty');
  const value = parsed(line);
  const problem = resultProblem(value);
  if (problem !== undefined) throw new NoResultError(`the last line of its stdout ${problem}`);
  return sanitizeResult(value as ScriptResult);
}

/** A script ended without a readable result. The message contains nothing that the script wrote. */
export class NoResultError extends Error {
  override readonly name = 'NoResultError';
  constructor(why: string, options?: { readonly cause?: unknown }) {
    super(
      `the machine gave no answer: ${why}. The connection was cut, the login shell refuses commands, or the script was killed; ` +
        'running it again is safe',
      options,
    );
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // The parser's message quotes the line, which may contain outputs.
    throw new NoResultError('the last line of its stdout is not JSON');
  }
}

function resultProblem(value: unknown): string | undefined {
  if (!isRecord(value)) return 'is not an object';
  const { ok, changed, reason, message, outputs } = value;
  if (typeof ok !== 'boolean' || typeof changed !== 'boolean') return 'has no "ok" and "changed"';
  if (![reason, message].every((text) => text === undefined || typeof text === 'string'))
    return 'has no text as reason';
  if (outputs === undefined) return undefined;
  const encoded =
    isRecord(outputs) && Object.values(outputs).every((text) => typeof text === 'string' && BASE64.test(text));
  return encoded ? undefined : 'has outputs that are not base64';
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function sanitizeResult({ ok, changed, reason, message, outputs }: ScriptResult): ScriptResult {
  return {
    ...{ ok, changed },
    ...(reason !== undefined && REASON.test(reason) && { reason }),
    ...(message !== undefined && { message: printable(message, MAX_MESSAGE) }),
    ...(outputs !== undefined && { outputs }),
  };
}

/** Longest message of a result, in characters: about 30 lines, for a machine with many problems. */
const MAX_MESSAGE = 4096;
/** A reason is one word, like that of a condition. Source: `metav1.Condition`, which allows more. */
const REASON = /^[A-Za-z][A-Za-z0-9]{0,63}$/;

/** An output of a result in plain text, or undefined when it has none of that name. It is secret. */
export function decodeOutput(answer: ScriptResult, name: string): string | undefined {
  const encoded = answer.outputs?.[name];
  if (encoded === undefined) return undefined;
  return new TextDecoder().decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)));
}

/**
 * Text from a machine or a foreign server, made short and safe for an error, an event, a status or a log.
 * Escape sequences of terminals are removed, other characters that are not printable become spaces; line
 * breaks stay.
 *
 * @param length maximum in UTF-16 code units, including the "..." at the end of a text that was cut
 */
export function printable(text: string, length: number): string {
  // Only the part that can be shown is processed, since the rest may be large.
  const shown = text
    .slice(0, length * 4)
    .replace(SEQUENCES, '')
    .replace(HIDDEN, ' ');
  if (shown.length <= length && text.length <= length * 4) return shown;
  // Without half of a surrogate pair.
  return `${shown.slice(0, Math.max(0, length - 3)).replace(/\p{Cs}$/u, '')}...`;
}

/** Escape sequences of terminals: CSI and OSC. Source: ECMA-48. */
const SEQUENCES = /\u{1b}\[[0-?]*[ -/]*[@-~]|\u{1b}\][^\u{7}\u{1b}]*(?:\u{7}|\u{1b}\\)?/gu;
/**
 * Characters that are invisible, or change how others appear: controls but LF, formats such as U+202E, lone
 * surrogates.
 */
const HIDDEN = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
