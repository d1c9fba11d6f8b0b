import * as pulumi from '@pulumi/pulumi';
import { isObject } from '../../constructs/kube/kube-object';
import type { Problem } from '../../constructs/kube/errors';
import { propertyPath, type PathStep } from './manifest';
import {
  hasDamagedToken,
  isNumberToken,
  isStringifiedOutput,
  splitAtTokens,
  type Piece,
  type TokenEntry,
  type Tokens,
} from './tokens';

/** Result of {@link resolveTokens}. */
export interface TokenResolution {
  /** The value with Outputs in place of tokens, at the leaves. */
  readonly value: unknown;
  readonly used: ReadonlySet<TokenEntry>;
  readonly problems: readonly Problem[];
}

/**
 * Replaces tokens by their Outputs. A value without tokens stays as it is.
 *
 * @param object names the value's object in errors
 */
export function resolveTokens(tokens: Tokens, object: string, value: unknown): TokenResolution {
  const placing = new TokenResolver(tokens, object);
  const result = placing.resolve(value, []);
  return { value: result, used: placing.used, problems: placing.problems };
}

/**
 * Base64 that may contain a token: rendered Secrets have it, and users encode too. A number token alone has 10
 * digits, and so 14 characters.
 */
const BASE64 = /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{14,}={0,2}(?![A-Za-z0-9+/=])/g;

class TokenResolver {
  readonly used = new Set<TokenEntry>();
  readonly problems: Problem[] = [];

  constructor(
    private readonly tokens: Tokens,
    private readonly object: string,
  ) {}

  resolve(value: unknown, at: readonly PathStep[]): unknown {
    if (typeof value === 'string') return this.text(value, at);
    if (typeof value === 'number') return this.number(value, at);
    if (Array.isArray(value)) return value.map((item: unknown, i) => this.resolve(item, [...at, i]));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, field]) => {
        this.checkKey(key, at);
        return [key, this.resolve(field, [...at, key])];
      }),
    );
  }

  private number(value: number, at: readonly PathStep[]): unknown {
    if (!isNumberToken(value)) return value;
    const entry = this.tokens.byNumber.get(value);
    if (entry === undefined) return this.addProblem(at, FOREIGN_NUMBER, value);
    this.used.add(entry);
    return entry.output;
  }

  private text(value: string, at: readonly PathStep[]): unknown {
    if (isStringifiedOutput(value)) return this.addProblem(at, STRINGIFIED, value);
    const pieces = splitAtTokens(value);
    const parts = pieces.flatMap((piece): readonly unknown[] =>
      'text' in piece ? this.encoded(piece.text, at) : [this.entryOf(piece, at)?.output ?? numeral(piece)],
    );
    const [only] = parts;
    // A number token within a text becomes a text, even if the text is nothing but its digits.
    if (parts.length === 1 && !pieces.some((piece) => 'number' in piece)) return only;
    if (!parts.some((part) => pulumi.Output.isInstance(part))) return parts.map(String).join('');
    return pulumi.all(parts).apply((resolved) => joined(resolved, `${this.object}#${propertyPath(at)}`));
  }

  /** The text in parts, with an Output for each run of base64 that contains tokens. */
  private encoded(text: string, at: readonly PathStep[]): readonly unknown[] {
    if (hasDamagedToken(text)) return [this.addProblem(at, DAMAGED, text)];
    const parts: unknown[] = [];
    let from = 0;
    for (const match of text.matchAll(BASE64)) {
      const decoded = Buffer.from(match[0], 'base64').toString('utf8');
      if (!hasDamagedToken(decoded) && !isStringifiedOutput(decoded) && !this.hasNumber(decoded)) continue;
      if (match.index > from) parts.push(text.slice(from, match.index));
      const placed = pulumi.output(this.text(decoded, at) as pulumi.Input<string>);
      parts.push(placed.apply((plain) => Buffer.from(plain, 'utf8').toString('base64')));
      from = match.index + match[0].length;
    }
    if (from < text.length || parts.length === 0) parts.push(text.slice(from));
    return parts;
  }

  /** Whether a text contains a number token of this program. Other numbers of that range are no tokens. */
  private hasNumber(text: string): boolean {
    return splitAtTokens(text).some((piece) => 'number' in piece && this.tokens.byNumber.has(piece.number));
  }

  private entryOf(piece: Exclude<Piece, { text: string }>, at: readonly PathStep[]): TokenEntry | undefined {
    const entry = 'id' in piece ? this.tokens.byId.get(piece.id) : this.tokens.byNumber.get(piece.number);
    if (entry !== undefined) this.used.add(entry);
    else if ('id' in piece) this.addProblem(at, FOREIGN, undefined);
    return entry;
  }

  private checkKey(key: string, at: readonly PathStep[]): void {
    const tokenised = splitAtTokens(key).some((piece) => !('text' in piece) && 'id' in piece);
    if (tokenised || hasDamagedToken(key) || isStringifiedOutput(key)) this.addProblem(at, KEY, undefined);
  }

  private addProblem<T>(at: readonly PathStep[], message: string, value: T): T {
    this.problems.push({ path: propertyPath(at), message });
    return value;
  }
}

/** Digits that look like a number token but are none stay as they are. */
function numeral(piece: Piece): unknown {
  return 'number' in piece ? String(piece.number) : '';
}

function joined(parts: readonly unknown[], at: string): string {
  for (const part of parts) {
    if (part === undefined || part === null || typeof part === 'object') {
      const actual = part === undefined || part === null ? String(part) : 'no plain value';
      throw new TypeError(`an Output within the text at ${at} is ${actual}; a text or number is expected`);
    }
  }
  return parts.map(String).join('');
}

const FOREIGN =
  'it holds a token that this program did not make: a manifest rendered elsewhere, a token calculated with, or one made before ' +
  'this run; make it with outputs.text() or outputs.number() in the same program';
const FOREIGN_NUMBER =
  'it is a number of the range that stands for Outputs, and none that this program made; make it with outputs.number() in the same ' +
  'program, and if the number itself is meant, write outputs.number(pulumi.output(number))';
const DAMAGED =
  'it holds a token that was cut or changed by the construct; put the Output where its value is handed on as it is';
const STRINGIFIED = 'an Output was turned into text by JavaScript; put outputs.text(output) into the string instead';
const KEY = 'a key holds an Output; only values can, since keys must be known while the program runs';
