import type { Source } from './task';

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
export function stdinText(values: readonly NamedValue[]): string {
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
export type LeafSource = Extract<Source, { secret: unknown } | { output: unknown } | { file: unknown }>;

/** What must be looked up before a source can be rendered, in the order in which {@link renderSource} asks for it. */
export function leavesOf(source: Source): readonly LeafSource[] {
  if ('text' in source) return [];
  if (!('template' in source)) return [source];
  return source.template.flatMap((part) => (typeof part === 'string' ? [] : leavesOf(part)));
}

/** The text that a source stands for. `lookup` gives the values of what stands elsewhere; what it throws, this throws. */
export function renderSource(source: Source, lookup: (leaf: LeafSource) => string): string {
  if ('text' in source) return source.text;
  if (!('template' in source)) return lookup(source);
  return source.template.map((part) => (typeof part === 'string' ? part : quoted(renderSource(part, lookup)))).join('');
}

/**
 * What YAML 1.2 does not take in a quoted text, or would read as a line break, though JSON does.
 * Source: YAML 1.2, 5.1 (printable characters) and 5.4 (line breaks); YAML 1.1 for the last two.
 */
const UNSAFE_IN_YAML = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** A text as a JSON string that YAML reads as the same text. */
function quoted(text: string): string {
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(text).replace(UNSAFE_IN_YAML, escape);
}
