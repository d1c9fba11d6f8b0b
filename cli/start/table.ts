import { stripVTControlCharacters } from 'node:util';
import type { Row } from './row';

/** How a table is drawn. */
export interface TableOptions {
  /** Columns of the terminal; longer lines are cut. @default no limit */
  readonly width?: number;
  /** Lines of the terminal; what does not fit is counted. @default no limit */
  readonly height?: number;
  /** @default false */
  readonly color?: boolean;
}

const HEADINGS = ['KIND', 'OBJECT', 'READY', 'REASON', 'CHILDREN'] as const;

/** Select Graphic Rendition, ECMA-48. */
const STYLES = { bold: 1, dim: 2, green: 32, yellow: 33 } as const;

/** The table as lines: one for each object, and below them why objects are not Ready. */
export function tableLines(rows: readonly Row[], options: TableOptions = {}): readonly string[] {
  const { width = Infinity, height = Infinity, color = false } = options;
  const cells = [
    HEADINGS,
    ...rows.map(({ kind, object, ready, reason, children }) => [kind, object, ready, reason, children]),
  ];
  const widths = HEADINGS.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)));
  const body = cells.map((line, i) => {
    const text = cut(
      line
        .map((cell, c) => cell.padEnd(widths[c] ?? 0))
        .join('  ')
        .trimEnd(),
      width,
    );
    return color ? paint(text, rows[i - 1]) : text;
  });
  const why = rows
    .filter(({ isReady, message }) => !isReady && message !== '')
    .map(({ object, message }) => cut(`  ${object}: ${oneLine(message)}`, width));
  return fit([...body, ...why], height);
}

function paint(text: string, row: Row | undefined): string {
  const style = row === undefined ? 'bold' : row.isReady ? 'green' : row.ready === 'False' ? 'yellow' : 'dim';
  return `\u001b[${STYLES[style]}m${text}\u001b[0m`;
}

function oneLine(text: string): string {
  return stripVTControlCharacters(text).replace(/\s+/g, ' ').trim();
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** A frame that is higher than the terminal could not be drawn over. */
function fit(lines: readonly string[], height: number): readonly string[] {
  if (lines.length <= height) return lines;
  const shown = Math.max(1, height - 1);
  return [...lines.slice(0, shown), `… ${lines.length - shown} more lines`];
}
