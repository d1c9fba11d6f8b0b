/**
 * The first characters of a text, as a text of their own: for what is kept, where the whole may be large. `slice` alone makes a view, which keeps all
 * of what it is cut from.
 *
 * A character that is cut in two ends as U+FFFD.
 *
 * @param length at most so many UTF-16 code units
 */
export function truncate(text: string, length: number): string {
  return text.length <= length ? text : Buffer.from(text.slice(0, length)).toString();
}
