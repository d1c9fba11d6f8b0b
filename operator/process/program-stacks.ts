import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setProgramStacks } from '../../constructs/kube/function-error';

/**
 * Has errors of kinds' functions name lines of the author's files, in a program that is bundled into one file with its
 * map beside it.
 *
 * The map is read when such an error is reported, and is not kept. With `node --enable-source-maps`, every process would
 * hold it from its start.
 *
 * @param program - the bundle. @default the file that this module is in
 */
export function reportSourceLines(program: string = __filename): void {
  setProgramStacks({ root: projectOf(program), toSources: (stack) => toSources(stack, program) });
}

/**
 * The nearest folder with a package.json above a program: a bundle is somewhere in its project. In an image there is
 * none, and the map names its files as if the project were beside the bundle.
 */
function projectOf(program: string): string {
  const beside = path.dirname(program);
  for (let folder = beside; ; folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, 'package.json'))) return folder;
    if (folder === path.dirname(folder)) return beside;
  }
}

/** What is used of a source map. Source: ECMA-426. */
interface SourceMap {
  readonly sources: readonly string[];
  readonly mappings: string;
}

/** A stack whose frames in the program are in its sources. It stays as it is without a map. */
function toSources(stack: string, program: string): string {
  const [before = '', ...parts] = stack.split(`${program}:`);
  const positions = parts.map((part) => /^\d+:\d+/.exec(part)?.[0] ?? '');
  findOrigins(program, positions);
  return (
    before + parts.map((part, i) => originIn(program, positions[i] ?? '') + part.slice(positions[i]?.length)).join('')
  );
}

/** Where positions of a program come from: many objects fail at one of them. */
const origins = new Map<string, string>();
const MAX_ORIGINS = 1_000;

function originIn(program: string, position: string): string {
  return origins.get(`${program}:${position}`) ?? `${program}:${position}`;
}

/** Reads the map, if the origin of a position is not known yet. */
function findOrigins(program: string, positions: readonly string[]): void {
  const file = `${program}.map`;
  const open = positions.filter((position) => !origins.has(`${program}:${position}`));
  if (open.length === 0 || !existsSync(file)) return;
  if (origins.size > MAX_ORIGINS) origins.clear();
  const map = JSON.parse(readFileSync(file, 'utf8')) as SourceMap;
  for (const position of open) origins.set(`${program}:${position}`, `${program}:${position}`);
  // A stack counts from 1, a map from 0.
  const wanted = open.map((position) => {
    const [line, column] = position.split(':').map((text) => Number(text) - 1);
    return { position, line: line ?? 0, column: column ?? 0 };
  });
  const lines = new Set(wanted.map(({ line }) => line));
  readMappings(map.mappings, lines, (line, segment) => {
    for (const { position, ...at } of wanted) {
      if (at.line !== line || segment.generatedColumn > at.column) continue;
      const source = path.resolve(path.dirname(program), map.sources[segment.source] ?? '');
      origins.set(`${program}:${position}`, `${source}:${segment.line + 1}:${segment.column + 1}`);
    }
  });
}

/** Where the code from a column on comes from; all from 0. */
interface Segment {
  generatedColumn: number;
  /** Index of the source. */
  source: number;
  line: number;
  column: number;
}

/**
 * Reads the segments of some lines, in one pass that stores nothing: the `SourceMap` of `node:module` would take some
 * 50 MB for the map of an operator.
 *
 * A segment has up to five numbers in base 64 with variable length, each the difference to the one before: generated
 * column (from 0 in each line), source, line, column, name. A digit has five bits, the lowest first; the lowest bit of a
 * number is its sign.
 *
 * @param read - called with the same object each time
 */
function readMappings(text: string, lines: ReadonlySet<number>, read: (line: number, segment: Segment) => void): void {
  const segment: Segment = { generatedColumn: 0, source: 0, line: 0, column: 0 };
  for (let i = 0, line = 0, field = 0, value = 0, shift = 0; i <= text.length; i += 1) {
    const code = i === text.length ? SEMICOLON : text.charCodeAt(i);
    if (code === COMMA || code === SEMICOLON) {
      if (field > 1 && lines.has(line)) read(line, segment);
      field = 0;
      if (code === COMMA) continue;
      segment.generatedColumn = 0;
      line += 1;
      continue;
    }
    const digit = digits[code] ?? 0;
    value += (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) !== 0) continue;
    const difference = (value & 1) === 1 ? -(value >> 1) : value >> 1;
    if (field === 0) segment.generatedColumn += difference;
    else if (field === 1) segment.source += difference;
    else if (field === 2) segment.line += difference;
    else if (field === 3) segment.column += difference;
    field += 1;
    value = 0;
    shift = 0;
  }
}

const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** The value of a digit by its character. */
const digits = new Uint8Array(128);
for (let i = 0; i < BASE64.length; i += 1) digits[BASE64.charCodeAt(i)] = i;
