import { isDeepStrictEqual } from 'node:util';

/** The path of the first difference between two JSON values, with both; undefined when they are the same. */
export function firstPath(wanted: unknown, live: unknown, path = ''): string | undefined {
  if (isDeepStrictEqual(wanted, live)) return undefined;
  if (!isContainer(wanted) || !isContainer(live)) {
    return `${path}: ${text(wanted)} wanted, ${text(live)} stands`;
  }
  for (const name of new Set([...Object.keys(wanted), ...Object.keys(live)])) {
    const found = firstPath(wanted[name], live[name], `${path}.${name}`);
    if (found !== undefined) return found;
  }
  // Only what JSON does not tell apart: undefined, and nothing.
  return undefined;
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function text(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}
