import { quoteYaml } from '../task/script-io';
import type { ValueSource } from '../task/task';

/** A value of a document that must be looked up, such as a password in a Secret. */
export class Lookup {
  constructor(readonly source: ValueSource) {}
}

/** A JSON value in which some leaves are {@link Lookup}s. */
export type YamlValue = string | number | boolean | null | Lookup | readonly YamlValue[] | YamlObject;

/** An object of a {@link YamlValue}. */
export interface YamlObject {
  readonly [key: string]: YamlValue | undefined;
}

/**
 * A document as YAML, written as JSON: one line, keys in their order in the document. Lookups stay sources,
 * which the runner resolves when it writes a script's stdin, so the source itself contains no secret.
 */
export function yamlSource(document: YamlValue): ValueSource {
  const parts: (string | ValueSource)[] = [''];
  const write = (piece: string | ValueSource): void => {
    const last = parts.at(-1);
    if (typeof piece === 'string' && typeof last === 'string') parts[parts.length - 1] = last + piece;
    else parts.push(piece);
  };
  writeValue(document, write);
  write('\n');
  const [only] = parts;
  return parts.length === 1 && typeof only === 'string' ? { text: only } : { template: parts };
}

/** Shown in place of a secret. */
export const REDACTED = '<redacted>';

/** The sources of all lookups in a document. */
export function lookupSources(document: YamlValue): readonly ValueSource[] {
  if (document instanceof Lookup) return [document.source];
  if (typeof document !== 'object' || document === null) return [];
  return Object.values(document as Readonly<Record<string, YamlValue | undefined>>).flatMap((value) =>
    value === undefined ? [] : lookupSources(value),
  );
}

function writeValue(document: YamlValue, write: (piece: string | ValueSource) => void): void {
  if (document instanceof Lookup) {
    write(document.source);
  } else if (Array.isArray(document)) {
    writeAll('[', document as readonly YamlValue[], ']', write);
  } else if (typeof document === 'object' && document !== null) {
    const fields = Object.entries(document).filter((field): field is [string, YamlValue] => field[1] !== undefined);
    writeAll('{', fields, '}', write, ([key, value]) => {
      write(`${quoteYaml(key)}: `);
      writeValue(value, write);
    });
  } else {
    write(typeof document === 'string' ? quoteYaml(document) : JSON.stringify(document));
  }
}

function writeAll<T>(
  open: string,
  items: readonly T[],
  close: string,
  write: (piece: string | ValueSource) => void,
  one: (item: T) => void = (item) => writeValue(item as YamlValue, write),
): void {
  write(open);
  items.forEach((item, i) => {
    if (i > 0) write(', ');
    one(item);
  });
  write(close);
}
