/** Sequences by which a terminal is told to do something: CSI and OSC, of ECMA-48. */
const SEQUENCES = /\u{1b}\[[0-?]*[ -/]*[@-~]|\u{1b}\][^\u{7}\u{1b}]*(?:\u{7}|\u{1b}\\)?/gu;
/** Characters that show as nothing, or change how others show: controls but LF, formats such as U+202E, halves of characters. */
const HIDDEN = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * What somebody else wrote - a machine, a foreign server - as a short text for people: on its way into an error, an event, a status or a log. Escape
 * sequences of terminals are left out, other characters that are not printable become spaces; lines stay.
 *
 * @param length at most so many UTF-16 code units, with the "..." at the end of a text that was cut
 */
export function printable(text: string, length: number): string {
  // Only what can be shown is looked at, and the rest may be large.
  const shown = text
    .slice(0, length * 4)
    .replace(SEQUENCES, '')
    .replace(HIDDEN, ' ');
  if (shown.length <= length && text.length <= length * 4) return shown;
  // Without the half of a character that is cut in two.
  return `${shown.slice(0, Math.max(0, length - 3)).replace(/\p{Cs}$/u, '')}...`;
}
