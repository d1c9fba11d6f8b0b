/** A text as one word of a POSIX shell, whatever it holds. */
export function sh(text: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Words of a command, each quoted. */
export function command(...words: readonly string[]): string {
  return words.map(sh).join(' ');
}
