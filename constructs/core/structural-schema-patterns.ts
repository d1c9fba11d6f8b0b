/** Escapes that mean the same in JavaScript and in RE2, outside and inside a character class. */
const SHARED_ESCAPES = new Set('dDwWsStnrfv');

/** The largest repetition that RE2 compiles. */
const MAX_REPEAT = 1000;

/**
 * Why the API server would refuse a pattern or read it otherwise than JavaScript does, or undefined when both agree.
 * Source: the syntax of Go's `regexp` package (RE2).
 */
export function patternProblem(pattern: string): string | undefined {
  return repeatProblem(pattern) ?? scan(pattern);
}

/** A pattern without the escapes of `/` that `RegExp.source` adds. */
export function plainPattern(source: string): string {
  return source.replaceAll(/\\(.)/gs, (escape, character: string) => (character === '/' ? '/' : escape));
}

function groupProblem(rest: string): string | undefined {
  if (/^\(\?[=!]/.test(rest)) return 'look-ahead is not in RE2; say it with a CEL rule (withRule)';
  if (/^\(\?<[=!]/.test(rest)) return 'look-behind is not in RE2; say it with a CEL rule (withRule)';
  return undefined;
}

function repeatProblem(pattern: string): string | undefined {
  const tooMany = [...pattern.matchAll(/\{([0-9]+)(?:,([0-9]*))?\}/g)].some(
    ([, least, most]) => Number(least) > MAX_REPEAT || Number(most ?? 0) > MAX_REPEAT,
  );
  return tooMany ? `RE2 repeats at most ${MAX_REPEAT} times; bound the length with min and max` : undefined;
}

function scan(pattern: string): string | undefined {
  let inClass = false;
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern.charAt(i);
    if (character === '\\') {
      i++;
      const problem = escapeProblem(pattern.slice(i), inClass);
      if (problem !== undefined) return problem;
    } else if (inClass) {
      if (pattern.startsWith('[:', i)) return '"[:" opens a POSIX class in RE2 only; put ":" first';
      inClass = character !== ']';
    } else if (character === '[') {
      if (/^\[\^?\]/.test(pattern.slice(i))) return 'an empty character class is not in RE2';
      inClass = true;
    } else if (character === '(') {
      const problem = groupProblem(pattern.slice(i));
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function escapeProblem(rest: string, inClass: boolean): string | undefined {
  const character = rest.charAt(0);
  if (SHARED_ESCAPES.has(character) || !/[A-Za-z0-9]/.test(character)) return undefined;
  if ((character === 'b' || character === 'B') && !inClass) return undefined;
  if (/^x[0-9A-Fa-f]{2}/.test(rest)) return undefined;
  if (/[1-9k]/.test(character))
    return `the back-reference \\${character} is not in RE2; say it with a CEL rule (withRule)`;
  return `the escape \\${character} does not mean the same in RE2; write the character itself`;
}
