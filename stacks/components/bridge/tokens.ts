import { createHash } from 'node:crypto';
import * as pulumi from '@pulumi/pulumi';
import { TOKEN_ID_LENGTH, numberToken } from './token-text';

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

const runs = new WeakMap<object, Tokens>();
const outsideOfRuns = {};

/** The tokens of the run under way: several may share a process, as with the Automation API and in tests. */
export function currentTokens(): Tokens {
  const run = pulumi.runtime.getMonitor() ?? outsideOfRuns;
  let tokens = runs.get(run);
  if (tokens === undefined) {
    tokens = { byId: new Map(), byNumber: new Map(), byOutput: new WeakMap(), counts: new Map() };
    runs.set(run, tokens);
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
export function inTokenScope<T>(name: string, build: () => T): { result: T; made: ReadonlySet<TokenEntry> } {
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
