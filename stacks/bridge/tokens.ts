import { createHash } from 'node:crypto';
import * as pulumi from '@pulumi/pulumi';
import { isObject } from '../../constructs/kube/kube-object';

/** Options of a token. */
export interface TokenOptions {
  /**
   * A name of the value, unique within the tree. Values that are derived from rendered text, such as a
   * checksum of a configuration, then depend on this name.
   * @default the number of the token within its tree
   */
  readonly id?: string;
}

/**
 * Tokens for Outputs in props that need plain values. The bridge replaces them by the Outputs, alone or
 * within a string.
 *
 * Guarantees: a secret stays secret, and a value that is unknown in a preview stays unknown, without
 * affecting other fields.
 *
 * Caveats: code that reads the value sees the token, whose length, digits and hash are not the value's. The
 * value is inserted unquoted; for an Output within JSON or YAML text, use `pulumi.jsonStringify`.
 */
export const outputs = {
  /** A token for an Output of text. It is a valid DNS label. */
  text(output: pulumi.Input<string>, options: TokenOptions = {}): string {
    if (typeof output === 'string') return output;
    return textToken(tokenFor(asOutput(output), options.id).id);
  },

  /**
   * A token for an Output of a number: an integer that fits into an int32. A schema with a lower maximum
   * rejects it, unless the object is a `KindResource`.
   */
  number(output: pulumi.Input<number>, options: TokenOptions = {}): number {
    if (typeof output === 'number') return output;
    return tokenFor(asOutput(output), options.id).number;
  },

  /**
   * An Output as a value of any type, or a value that contains Outputs. It only works where the construct
   * passes the value on without reading it: anywhere in a plain `ApiObject`, and at the leaves of cdk8s's
   * generated constructs.
   */
  any<T>(output: pulumi.Input<T>): T {
    return output as T;
  },
} as const;

/** Whether a value is an Output or a promise: it is known only once other resources exist. */
export function isDeferred(value: unknown): value is pulumi.OutputInstance<unknown> | Promise<unknown> {
  return pulumi.Output.isInstance(value) || (isObject(value) && typeof value['then'] === 'function');
}

function asOutput(value: unknown): pulumi.Output<unknown> {
  return pulumi.Output.isInstance(value) ? value : pulumi.output(value);
}

/** The tokens of one run of a Pulumi program. */
export interface Tokens {
  readonly byId: Map<string, TokenEntry>;
  readonly byNumber: Map<number, TokenEntry>;
  readonly byOutput: WeakMap<object, TokenEntry>;
  /** How many tokens there are for a scope and key, for their ids. */
  readonly counts: Map<string, number>;
}

/** A token and its Output. */
export interface TokenEntry {
  readonly id: string;
  readonly number: number;
  readonly output: pulumi.Output<unknown>;
}

const tokensByRun = new WeakMap<object, Tokens>();
const noRun = {};

/**
 * The tokens of the current run. Several runs may share a process, as with the Automation API and in tests.
 */
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
 * Runs `build`. Tokens that it creates belong to the tree `name`.
 *
 * @returns its result, and the tokens that it created
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
 * The entry of an Output, a new one if it has none. Its id depends on the current tree, on `key`, and on how
 * many tokens with the same tree and key there are already; never on what else the process does. So a value
 * that is derived from a text with a token, such as a hash or a name, is the same in every run of the same
 * program.
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
 * The form of tokens. Text tokens are valid DNS labels, so that they pass as names, hosts, labels and images.
 * Number tokens are near the end of int32, the type of Kubernetes' integers: above the priorities of its
 * system pods and below the maximum.
 */
const PREFIX = 'pulumi-output-';
const ID_LENGTH = 20;
const FIRST_NUMBER = 2_100_000_000;
const NUMBERS = 47_000_000;

/** Characters of a token's id. */
const TOKEN_ID_LENGTH = ID_LENGTH;

/** The text token with an id. */
export function textToken(id: string): string {
  return `${PREFIX}${id}`;
}

/** The number token with an id. */
function numberToken(id: string): number {
  return FIRST_NUMBER + (Number.parseInt(id.slice(0, 12), 16) % NUMBERS);
}

/** Whether a number is in the range of number tokens. */
export function isNumberToken(value: number): boolean {
  return value >= FIRST_NUMBER && value < FIRST_NUMBER + NUMBERS;
}

/** A piece of a string: plain text, or a token. */
export type Piece = { readonly text: string } | { readonly id: string } | { readonly number: number };

const TOKENS = new RegExp(`${PREFIX}([0-9a-f]{${ID_LENGTH}})|(?<![0-9])(21[0-4][0-9]{7})(?![0-9])`, 'g');

/** Splits a string at the tokens in it. */
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

/** Whether a text without whole tokens contains part of one, or one in upper case. */
export function hasDamagedToken(text: string): boolean {
  return text.toLowerCase().includes(PREFIX);
}

/**
 * Whether a text is what Pulumi returns for an Output as string or JSON. Source: `Output.toString` and
 * `toJSON` of @pulumi/pulumi.
 */
export function isStringifiedOutput(text: string): boolean {
  return /Calling \[(toString|toJSON)\] on an \[Output/.test(text);
}

/** Whether a value is a number token, or a text that contains a token. */
export function containsToken(value: string | number): boolean {
  if (typeof value === 'number') return isNumberToken(value);
  return splitAtTokens(value).some((piece) => !('text' in piece)) || hasDamagedToken(value);
}
