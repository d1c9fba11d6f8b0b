import { stripVTControlCharacters } from 'node:util';
import type { Row } from './object-watcher';

/** The output for the user. */
export interface View {
  /** Shows the objects as they are now. */
  show(rows: readonly Row[]): void;
  /** Writes lines that stay. */
  print(text: string): void;
  /** Keeps the last table on the screen: nothing overwrites it after this. */
  end(): void;
}

/** The part of stdout that is used. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

/** On a terminal, a table that is updated in place; elsewhere, one line for each change. */
export function createView(screen: Screen, env: NodeJS.ProcessEnv = process.env): View {
  const dumb = env['TERM'] === 'dumb';
  return screen.isTTY === true && !dumb
    ? new TableView(screen, (env['NO_COLOR'] ?? '') === '')
    : new ChangesView(screen);
}

/** Updates the table in place. */
class TableView implements View {
  private drawn = 0;
  private rows: readonly Row[] = [];

  constructor(
    private readonly screen: Screen,
    private readonly color: boolean,
  ) {}

  show(rows: readonly Row[]): void {
    this.rows = rows;
    this.screen.write(this.erase() + this.frame());
  }

  print(text: string): void {
    const table = this.drawn > 0;
    this.screen.write(`${this.erase()}${text}\n${table ? this.frame() : ''}`);
  }

  end(): void {
    this.drawn = 0;
  }

  private frame(): string {
    const { columns: width = 80, rows: height = 24 } = this.screen;
    const lines = tableLines(this.rows, { width: width - 1, height: height - 1, color: this.color });
    this.drawn = lines.length;
    return `${lines.join('\n')}\n`;
  }

  /** Moves the cursor to the table's first line and erases everything below it. */
  private erase(): string {
    const lines = this.drawn;
    this.drawn = 0;
    return lines === 0 ? '' : `\u001b[${lines}A\u001b[J`;
  }
}

/** Writes one line for each changed object. */
class ChangesView implements View {
  private readonly shown = new Map<string, string>();

  constructor(private readonly screen: Screen) {}

  show(rows: readonly Row[]): void {
    const gone = new Set(this.shown.keys());
    for (const row of rows) {
      const key = `${row.kind} ${row.object}`;
      gone.delete(key);
      const line = changeLine(row);
      if (this.shown.get(key) === line) continue;
      this.shown.set(key, line);
      this.screen.write(`${line}\n`);
    }
    for (const key of gone) {
      this.shown.delete(key);
      this.screen.write(`${key} is gone\n`);
    }
  }

  print(text: string): void {
    this.screen.write(`${text}\n`);
  }

  end(): void {
    this.shown.clear();
  }
}

function changeLine({ kind, object, ready, reason, message, children, isReady }: Row): string {
  const why = isReady || message === '' || reason === 'Waiting' ? '' : `: ${message.replace(/\s+/g, ' ')}`;
  return `${kind} ${object} Ready=${ready} (${reason}) children: ${children}${why}`;
}

/** Options of {@link tableLines}. */
interface TableOptions {
  /** Columns of the terminal; longer lines are cut. @default no limit */
  readonly width?: number;
  /** Lines of the terminal; lines that do not fit are counted. @default no limit */
  readonly height?: number;
  /** @default false */
  readonly color?: boolean;
}

const HEADINGS = ['KIND', 'OBJECT', 'READY', 'REASON', 'CHILDREN'] as const;

/** Select Graphic Rendition, ECMA-48. */
const STYLES = { bold: 1, dim: 2, green: 32, yellow: 33 } as const;

/**
 * The table as lines: one for each object, and below them why objects are not Ready.
 *
 * @testonly
 */
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

/** Cuts the table to the terminal's height: a higher one could not be overwritten. */
function fit(lines: readonly string[], height: number): readonly string[] {
  if (lines.length <= height) return lines;
  const shown = Math.max(1, height - 1);
  return [...lines.slice(0, shown), `… ${lines.length - shown} more lines`];
}
