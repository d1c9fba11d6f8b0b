/**
 * Why the API server would reject a pattern or read it differently from JavaScript, or undefined when both
 * agree.
 * Source: the syntax of Go's `regexp` package (RE2).
 */
export function patternProblem(pattern: string): string | undefined {
  return repeatProblem(pattern) ?? syntaxProblem(pattern);
}

/** A pattern without the escapes of `/` that `RegExp.source` adds. */
export function unescapeSlashes(source: string): string {
  return source.replaceAll(/\\(.)/gs, (escape, character: string) => (character === '/' ? '/' : escape));
}

/** The largest repetition that RE2 compiles, counted through nested groups. */
const MAX_REPEAT = 1000;

const TOO_MANY = `RE2 repeats at most ${MAX_REPEAT} times, nested repetitions multiplied; bound the length with min and max`;
const REPEAT = /^\{([0-9]+)(?:,([0-9]*))?\}/;

/**
 * Reports repetitions that are too large. Nested ones count as their product, as in Go's parser: the count of
 * an atom is the largest count within it, times its own.
 */
function repeatProblem(pattern: string): string | undefined {
  /** The largest count within each open group, the pattern itself first. */
  const groups: number[] = [1];
  let atom = 1;
  const close = (): void => {
    atom = groups.pop() ?? 1;
    if (groups.length === 0) groups.push(1);
  };
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern.charAt(i);
    const repeat = REPEAT.exec(pattern.slice(i));
    if (repeat !== null) {
      const [text, least, most = ''] = repeat;
      atom *= Math.max(Number(least), Number(most), 1);
      if (atom > MAX_REPEAT) return TOO_MANY;
      i += text.length - 1;
    } else if (character === '(') groups.push(1);
    else if (character === ')') close();
    else atom = 1;
    if (character === '\\') i++;
    else if (character === '[') i = classEnd(pattern, i);
    groups.push(Math.max(groups.pop() ?? 1, atom));
  }
  return undefined;
}

/** Where a character class ends. */
function classEnd(pattern: string, start: number): number {
  for (let i = start + 1; i < pattern.length; i++) {
    if (pattern.charAt(i) === '\\') i++;
    else if (pattern.charAt(i) === ']') return i;
  }
  return pattern.length;
}

function syntaxProblem(pattern: string): string | undefined {
  let inClass = false;
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern.charAt(i);
    if (character === '\\') {
      i++;
      const problem = escapeProblem(pattern.slice(i), inClass) ?? (inClass ? rangeProblem(pattern, i - 1) : undefined);
      if (problem !== undefined) return problem;
    } else if (inClass) {
      if (pattern.startsWith('[:', i)) return '"[:" opens a POSIX class in RE2 only; put ":" first';
      inClass = character !== ']';
    } else if (character === '[') {
      if (/^\[\^?\]/.test(pattern.slice(i))) return 'an empty character class is not in RE2';
      inClass = true;
    } else if (character === '(') {
      const problem = lookaroundProblem(pattern.slice(i));
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

/** Escapes that mean the same in JavaScript and in RE2, outside and inside a character class. */
const SHARED_ESCAPES = new Set('dDwWtnrfv');

function escapeProblem(rest: string, inClass: boolean): string | undefined {
  const character = rest.charAt(0);
  if (character === 's') return 'the escape \\s takes in fewer characters in RE2; write [ \\t\\n\\f\\r]';
  if (character === 'S') return 'the escape \\S takes in more characters in RE2; write [^ \\t\\n\\f\\r]';
  if (character > '\x7f') return `RE2 knows no escape of "${character}"; write the character itself`;
  if (SHARED_ESCAPES.has(character) || !/[A-Za-z0-9]/.test(character)) return undefined;
  if ((character === 'b' || character === 'B') && !inClass) return undefined;
  if (/^x[0-9A-Fa-f]{2}/.test(rest)) return undefined;
  if (/[1-9k]/.test(character))
    return `the back-reference \\${character} is not in RE2; say it with a CEL rule (withRule)`;
  return `the escape \\${character} does not mean the same in RE2; write the character itself`;
}

/** Escapes for a class of characters, which cannot end a range. */
const CLASS_ESCAPE = /^\\[dDwW]/;

/** `[a-\d]`: JavaScript reads the dash literally, RE2 does not compile it. */
function rangeProblem(pattern: string, at: number): string | undefined {
  if (!CLASS_ESCAPE.test(pattern.slice(at)) || pattern.charAt(at - 1) !== '-') return undefined;
  if ('[^'.includes(pattern.charAt(at - 2)) || CLASS_ESCAPE.test(pattern.slice(at - 3))) return undefined;
  return `${pattern.slice(at, at + 2)} is no end of a range in RE2; put "-" first or last in its class`;
}

function lookaroundProblem(rest: string): string | undefined {
  if (/^\(\?[=!]/.test(rest)) return 'look-ahead is not in RE2; say it with a CEL rule (withRule)';
  if (/^\(\?<[=!]/.test(rest)) return 'look-behind is not in RE2; say it with a CEL rule (withRule)';
  return undefined;
}
