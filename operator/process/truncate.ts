/**
 * The first characters of a text as a string of its own, for values that are kept while the original may be
 * large: the result of `slice` alone keeps the whole original in memory.
 *
 * A character that is cut in two becomes U+FFFD.
 *
 * @param length the largest number of UTF-16 code units
 */
export function truncate(text: string, length: number): string {
  return text.length <= length ? text : Buffer.from(text.slice(0, length)).toString();
}
