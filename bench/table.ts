/**
 * Rows under a heading, in columns: the first flush left, the others flush right.
 *
 * @throws RangeError when a row has another number of cells than the heading
 */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const odd = rows.find((row) => row.length !== heading.length);
  if (odd !== undefined) throw new RangeError(`${String(odd.length)} cells in a table of ${String(heading.length)}`);
  const widths = heading.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('   ')
      .trimEnd();
  return [heading, ...rows].map(line).join('\n');
}

/** A number for a table: whole ones as they are, others to so many digits that four count. */
export function figure(value: number): string {
  if (Number.isNaN(value)) return '-';
  if (Number.isInteger(value)) return String(value);
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.max(Math.abs(value), 0.1))));
  return value.toFixed(Math.min(digits, 3));
}
