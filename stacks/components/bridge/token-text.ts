/**
 * How a token looks. Text tokens are valid DNS labels, so that they pass for names, hosts, labels and images; number tokens are
 * integers near the end of int32, which is what Kubernetes' integers are, beyond the priorities of its system pods and below the maximum.
 */
const PREFIX = 'pulumi-output-';
const ID_LENGTH = 20;
const FIRST_NUMBER = 2_100_000_000;
const NUMBERS = 47_000_000;

/** A text that stands for the value of an Output. */
export function textToken(id: string): string {
  return `${PREFIX}${id}`;
}

/** A number that stands for the value of an Output, from the token's id. */
export function numberToken(id: string): number {
  return FIRST_NUMBER + (Number.parseInt(id.slice(0, 12), 16) % NUMBERS);
}

/** Whether a number lies where only number tokens do. */
export function isNumberToken(value: number): boolean {
  return value >= FIRST_NUMBER && value < FIRST_NUMBER + NUMBERS;
}

/** A piece of a string: text as it stands, or a token. */
export type Piece = { readonly text: string } | { readonly id: string } | { readonly number: number };

const TOKENS = new RegExp(`${PREFIX}([0-9a-f]{${ID_LENGTH}})|(?<![0-9])(21[0-4][0-9]{7})(?![0-9])`, 'g');

/** Divides a string at the tokens in it. */
export function piecesOf(value: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  for (const match of value.matchAll(TOKENS)) {
    if (match.index > at) pieces.push({ text: value.slice(at, match.index) });
    const [whole, id, number] = match;
    pieces.push(id === undefined ? { number: Number(number) } : { id });
    at = match.index + whole.length;
  }
  if (at < value.length || pieces.length === 0) pieces.push({ text: value.slice(at) });
  return pieces;
}

/** Whether a text without whole tokens shows that one was cut, or put into upper case. */
export function isDamaged(text: string): boolean {
  return text.toLowerCase().includes(PREFIX);
}

/** What Pulumi says where an Output was made a string or JSON. Source: `Output.toString` and `toJSON` of @pulumi/pulumi. */
export function isStringifiedOutput(text: string): boolean {
  return /Calling \[(toString|toJSON)\] on an \[Output/.test(text);
}

/** Characters of a token's id. */
export const TOKEN_ID_LENGTH = ID_LENGTH;

/** Whether a value is a number token, or a text with any token in it. */
export function holdsToken(value: string | number): boolean {
  if (typeof value === 'number') return isNumberToken(value);
  return piecesOf(value).some((piece) => !('text' in piece)) || isDamaged(value);
}
