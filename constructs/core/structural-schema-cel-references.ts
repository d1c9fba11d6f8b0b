/** What of the value under `self` a CEL rule reads. */
export interface References {
  /** The rule uses `self` or `oldSelf` as a whole, for example `self == oldSelf`. */
  readonly whole: boolean;
  /** Every name in the rule; a field that is not among them is not read, unless with its parent as a whole. */
  readonly names: ReadonlySet<string>;
  /** The names that are used as a whole somewhere, for example `a` in `self.a == oldSelf.a`. */
  readonly wholeNames: ReadonlySet<string>;
  /** Some variable of a macro, such as `x` in `self.all(x, x != y)`, is used as a whole. */
  readonly wholeItems: boolean;
}

const MACROS =
  /[.](?:all|exists|exists_one|map|filter|existsOne|transformList|transformMap|transformMapEntry)\(\s*([A-Za-z_]\w*)\s*,\s*(?:([A-Za-z_]\w*)\s*,)?/g;

/**
 * What a rule reads, seen from its text alone: rather too much than too little.
 *
 * Assumptions: a field is read by its name (a typed object has no other access), and `has(...)` of a plain path reads nothing.
 */
export function ruleReferences(rule: string): References {
  const text = withoutTexts(rule).replaceAll(/\bhas\([^()]*\)/g, 'true');
  const variables = new Set([...text.matchAll(MACROS)].flatMap(([, first, second]) => [first, second]));
  const body = text.replaceAll(MACROS, (macro) => macro.replaceAll(/[A-Za-z_]\w*\s*,/g, ''));
  const names = new Set<string>();
  const wholeNames = new Set<string>();
  for (const match of body.matchAll(/([A-Za-z_]\w*)\s*([.[(]?)/g)) {
    const name = unescaped(match[1] ?? '');
    names.add(name);
    if (match[2] === '') wholeNames.add(name);
  }
  const whole = wholeNames.has('self') || wholeNames.has('oldSelf');
  return {
    whole,
    names,
    wholeNames,
    wholeItems: [...variables].some((name) => name !== undefined && wholeNames.has(name)),
  };
}

/** A rule with its texts emptied: what stands in them names nothing. */
export function withoutTexts(rule: string): string {
  return rule.replaceAll(/'(\\.|[^'\\])*'|"(\\.|[^"\\])*"/g, "''");
}

/** A name as the schema has it. CEL escapes what it cannot spell. Source: KEP-2876, "Field path escaping". */
function unescaped(name: string): string {
  return name
    .replaceAll('__dot__', '.')
    .replaceAll('__dash__', '-')
    .replaceAll('__slash__', '/')
    .replaceAll('__underscores__', '__')
    .replace(/^__(.+)__$/, '$1');
}
