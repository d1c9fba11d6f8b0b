import { printable } from './printable';
import type { Answer } from './task';

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
export function parseAnswer(stdout: string): Answer {
  const line = stdout.split(/\r?\n/).findLast((text) => text.trim() !== '');
  if (line === undefined) throw new NoAnswerError('its stdout is empty');
  const value = parsed(line);
  const problem = answerProblem(value);
  if (problem !== undefined) throw new NoAnswerError(`the last line of its stdout ${problem}`);
  return readable(value as Answer);
}

function readable({ ok, changed, reason, message, outputs }: Answer): Answer {
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

function answerProblem(value: unknown): string | undefined {
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
export function outputText(answer: Answer, name: string): string | undefined {
  const encoded = answer.outputs?.[name];
  if (encoded === undefined) return undefined;
  return new TextDecoder().decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)));
}
