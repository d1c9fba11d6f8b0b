import type { ScriptResult, ValueSource } from './task';

/** A value with its name, as it goes to a script. */
export interface NamedValue {
  readonly name: string;
  readonly value: string;
}

const NAME = /^[a-z][a-z0-9_]*$/;

/**
 * The stdin of a script: one line a value, being its name, a space, and the base64 of its UTF-8.
 *
 * @throws TypeError for a name that is no shell variable, or stands twice
 */
export function encodeStdin(values: readonly NamedValue[]): string {
  const names = values.map(({ name }) => name);
  const wrong = names.find((name, i) => !NAME.test(name) || names.indexOf(name) !== i);
  if (wrong !== undefined) throw new TypeError(`stdin value "${wrong}": names match ${NAME.source} and are unique`);
  return values.map(({ name, value }) => `${name} ${base64(value)}\n`).join('');
}

/** The base64 of a text's UTF-8. */
export function base64(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let characters = '';
  // In pieces, since a call takes some 100,000 arguments at most.
  for (let i = 0; i < bytes.length; i += 8192) characters += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(characters);
}

/** A source whose value stands elsewhere. */
export type ExternalSource = Extract<ValueSource, { secret: unknown } | { output: unknown } | { file: unknown }>;

/** What must be looked up before a source can be rendered, in the order in which {@link renderSource} asks for it. */
export function externalSources(source: ValueSource): readonly ExternalSource[] {
  if ('text' in source) return [];
  if (!('template' in source)) return [source];
  return source.template.flatMap((part) => (typeof part === 'string' ? [] : externalSources(part)));
}

/** The text that a source stands for. `lookup` gives the values of what stands elsewhere; what it throws, this throws. */
export function renderSource(source: ValueSource, lookup: (leaf: ExternalSource) => string): string {
  if ('text' in source) return source.text;
  if (!('template' in source)) return lookup(source);
  return source.template
    .map((part) => (typeof part === 'string' ? part : quoteYaml(renderSource(part, lookup))))
    .join('');
}

/**
 * What YAML 1.2 does not take in a quoted text, or would read as a line break, though JSON does.
 * Source: YAML 1.2, 5.1 (printable characters) and 5.4 (line breaks); YAML 1.1 for the last two.
 */
const UNSAFE_IN_YAML = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** A text as a JSON string that YAML reads as the same text. */
function quoteYaml(text: string): string {
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(text).replace(UNSAFE_IN_YAML, escape);
}

/** Who logs in. */
export interface LoginOptions {
  /** The user of the machine. */
  readonly user: string;
  /** Run as that user, not as root. @default false */
  readonly asUser?: boolean;
}

/** The longest single argument that Linux hands to a program, in bytes: MAX_ARG_STRLEN, less some room. Source: execve(2). */
const MAX_LENGTH = 128 * 1024 - 1024;

/**
 * The one string that sshd gives to the user's login shell: it runs a script with `sh` as root, by `sudo -n` unless the user is root
 * already. Its stdin is the script's.
 *
 * The string is `sh -c '...'` with nothing but base64 of ours between the quotes, no quote, backslash or `!` in them: sh, bash, dash, zsh, ksh,
 * fish and csh all read it alike. It holds no secret, because scripts hold none.
 *
 * @throws RangeError when the script is longer than Linux takes
 */
export function sshCommand(script: string, { user, asUser = false }: LoginOptions): string {
  const started = asUser || user === 'root' ? script : withSudo(script, user);
  const line = `sh -c 'eval "$(printf %s ${base64(started)} | base64 -d)"'`;
  if (line.length > MAX_LENGTH) {
    throw new RangeError(`the script has ${script.length} characters, too many for one command line; split the task`);
  }
  return line;
}

/** `sh` of a script in single quotes, as POSIX has them. */
function singleQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A script that runs another as root, or answers that it must not. */
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

/** A script ended without a readable answer. The message holds nothing of what the script wrote. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  constructor(why: string, options?: { readonly cause?: unknown }) {
    super(
      `the machine gave no answer: ${why}. The connection was cut, the login shell refuses commands, or the script was killed; ` +
        'running it again is safe',
      options,
    );
  }
}

/** The longest text that an answer may give, in characters: some 30 lines, for a machine where much is to be changed. */
const MAX_MESSAGE = 4096;
/** A reason is one word, as that of a condition. Source: `metav1.Condition`, which takes more. */
const REASON = /^[A-Za-z][A-Za-z0-9]{0,63}$/;

/**
 * The answer of a script: the last line of its stdout that is not empty. What stands before it (a login banner, for example) is ignored. Its text is
 * cut to what people can read, and a reason that is none is left out: whoever has the machine could else write anything into the records, events
 * and status that are made of it.
 *
 * @throws NoAnswerError when that line is none
 */
export function parseScriptResult(stdout: string): ScriptResult {
  const line = stdout.split(/\r?\n/).findLast((text) => text.trim() !== '');
  if (line === undefined) throw new NoAnswerError('its stdout is empty');
  const value = parsed(line);
  const problem = resultProblem(value);
  if (problem !== undefined) throw new NoAnswerError(`the last line of its stdout ${problem}`);
  return sanitizeResult(value as ScriptResult);
}

function sanitizeResult({ ok, changed, reason, message, outputs }: ScriptResult): ScriptResult {
  return {
    ...{ ok, changed },
    ...(reason !== undefined && REASON.test(reason) && { reason }),
    ...(message !== undefined && { message: printable(message, MAX_MESSAGE) }),
    ...(outputs !== undefined && { outputs }),
  };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // The parser's message quotes the line, which may hold outputs.
    throw new NoAnswerError('the last line of its stdout is not JSON');
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

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

/** An output of an answer in plain text, or undefined when it has none of that name. It is a secret. */
export function decodeOutput(answer: ScriptResult, name: string): string | undefined {
  const encoded = answer.outputs?.[name];
  if (encoded === undefined) return undefined;
  return new TextDecoder().decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)));
}

/** Sequences by which a terminal is told to do something: CSI and OSC, of ECMA-48. */
const SEQUENCES = /\u{1b}\[[0-?]*[ -/]*[@-~]|\u{1b}\][^\u{7}\u{1b}]*(?:\u{7}|\u{1b}\\)?/gu;
/** Characters that show as nothing, or change how others show: controls but LF, formats such as U+202E, halves of characters. */
const HIDDEN = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * What somebody else wrote - a machine, a foreign server - as a short text for people: on its way into an error, an event, a status or a log. Escape
 * sequences of terminals are left out, other characters that are not printable become spaces; lines stay.
 *
 * @param length at most so many UTF-16 code units, with the "..." at the end of a text that was cut
 */
export function printable(text: string, length: number): string {
  // Only what can be shown is looked at, and the rest may be large.
  const shown = text
    .slice(0, length * 4)
    .replace(SEQUENCES, '')
    .replace(HIDDEN, ' ');
  if (shown.length <= length && text.length <= length * 4) return shown;
  // Without the half of a character that is cut in two.
  return `${shown.slice(0, Math.max(0, length - 3)).replace(/\p{Cs}$/u, '')}...`;
}
