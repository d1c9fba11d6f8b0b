import { createHash } from 'node:crypto';
import * as pulumi from '@pulumi/pulumi';

/** How a token is told apart from others. */
export interface TokenOptions {
  /**
   * A name of the value, unique within the tree. What is derived of rendered text, such as a checksum of a configuration, then
   * follows from it.
   * @default the place of the token among those of its tree
   */
  readonly id?: string;
}

/**
 * Places for Outputs in props that want plain values. The bridge puts the Outputs where these stand, alone or within a string.
 *
 * Guarantees: a secret stays secret and what is unknown in a preview stays unknown, at its own place only.
 *
 * Caveats: code that looks at the value sees a stand-in: its length, its digits and its hash are not the value's. Within JSON or YAML text
 * the value is put in as it is, unquoted: make such texts of Outputs with `pulumi.jsonStringify`.
 */
export const outputs = {
  /** A text that stands for an Output's. It is a valid DNS label. */
  text(output: pulumi.Input<string>, options: TokenOptions = {}): string {
    if (typeof output === 'string') return output;
    return textToken(tokenFor(asOutput(output), options.id).id);
  },

  /**
   * A number that stands for an Output's: an integer that an int32 holds. A schema with a lower maximum refuses it, unless the object is
   * made with {@link KindResource}.
   */
  number(output: pulumi.Input<number>, options: TokenOptions = {}): number {
    if (typeof output === 'number') return output;
    return tokenFor(asOutput(output), options.id).number;
  },

  /**
   * An Output in a place of any type, or a value with Outputs in it. It only stands where the construct hands the value on without looking at
   * it: at any place of a plain `ApiObject`, and at the leaves of cdk8s's generated constructs.
   */
  any<T>(output: pulumi.Input<T>): T {
    return output as T;
  },
} as const;

function asOutput(value: unknown): pulumi.Output<unknown> {
  return pulumi.Output.isInstance(value) ? value : pulumi.output(value);
}

/** The tokens of one run of a Pulumi program. */
export interface Tokens {
  readonly byId: Map<string, TokenEntry>;
  readonly byNumber: Map<number, TokenEntry>;
  readonly byOutput: WeakMap<object, TokenEntry>;
  /** How many tokens a scope has made, for their ids. */
  readonly counts: Map<string, number>;
}

/** One Output that a token stands for. */
export interface TokenEntry {
  readonly id: string;
  readonly number: number;
  readonly output: pulumi.Output<unknown>;
}

const tokensByRun = new WeakMap<object, Tokens>();
const noRun = {};

/** The tokens of the run under way: several may share a process, as with the Automation API and in tests. */
export function currentTokens(): Tokens {
  const run = pulumi.runtime.getMonitor() ?? noRun;
  let tokens = tokensByRun.get(run);
  if (tokens === undefined) {
    tokens = { byId: new Map(), byNumber: new Map(), byOutput: new WeakMap(), counts: new Map() };
    tokensByRun.set(run, tokens);
  }
  return tokens;
}

/** A tree under construction. */
interface TokenScope {
  readonly name: string;
  readonly made: Set<TokenEntry>;
}

const scopes: TokenScope[] = [];

/**
 * Runs `build`, during which tokens belong to a tree.
 *
 * @returns what it returned, and the tokens it made
 */
export function withTokenScope<T>(name: string, build: () => T): { result: T; made: ReadonlySet<TokenEntry> } {
  const scope: TokenScope = { name, made: new Set() };
  scopes.push(scope);
  try {
    return { result: build(), made: scope.made };
  } finally {
    scopes.pop();
  }
}

/**
 * The entry of an Output, a new one where it has none. Its id follows from `key`, or else from the tree under construction and how many
 * tokens this tree made before: never from what else the process does, so that what is derived of a text with a token in it (a
 * hash, a name) is the same in every run of the same program.
 */
export function tokenFor(output: pulumi.Output<unknown>, key?: string): TokenEntry {
  const tokens = currentTokens();
  const known = tokens.byOutput.get(output);
  if (known !== undefined) return known;
  const scope = scopes.at(-1);
  const base = `${scope?.name ?? ''}|${key ?? ''}`;
  const entry = newEntry(tokens, base, output);
  tokens.byId.set(entry.id, entry);
  tokens.byNumber.set(entry.number, entry);
  tokens.byOutput.set(output, entry);
  scope?.made.add(entry);
  return entry;
}

function newEntry(tokens: Tokens, base: string, output: pulumi.Output<unknown>): TokenEntry {
  for (;;) {
    const count = tokens.counts.get(base) ?? 0;
    tokens.counts.set(base, count + 1);
    const id = createHash('sha256').update(`${base}|${count}`).digest('hex').slice(0, TOKEN_ID_LENGTH);
    const number = numberToken(id);
    if (!tokens.byId.has(id) && !tokens.byNumber.has(number)) return { id, number, output };
  }
}

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
function numberToken(id: string): number {
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
export function splitAtTokens(value: string): readonly Piece[] {
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
export function hasDamagedToken(text: string): boolean {
  return text.toLowerCase().includes(PREFIX);
}

/** What Pulumi says where an Output was made a string or JSON. Source: `Output.toString` and `toJSON` of @pulumi/pulumi. */
export function isStringifiedOutput(text: string): boolean {
  return /Calling \[(toString|toJSON)\] on an \[Output/.test(text);
}

/** Characters of a token's id. */
const TOKEN_ID_LENGTH = ID_LENGTH;

/** Whether a value is a number token, or a text with any token in it. */
export function containsToken(value: string | number): boolean {
  if (typeof value === 'number') return isNumberToken(value);
  return splitAtTokens(value).some((piece) => !('text' in piece)) || hasDamagedToken(value);
}
