/** The name formats of Kubernetes that a child's name or label may demand. Source: RFC 1123 and RFC 1035 as the API validates them. */
export type NameFormat = 'dns-label' | 'dns-subdomain' | 'dns-1035-label';

/** What an object's `metadata.name` must be, besides a valid name of its own. */
export interface NameRule {
  readonly format: NameFormat;
  /** In characters. @default 63 for labels, 253 for subdomains */
  readonly maxLength?: number;
}

const patterns: Readonly<Record<NameFormat, string>> = {
  'dns-label': '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  'dns-1035-label': '^[a-z]([-a-z0-9]*[a-z0-9])?$',
  'dns-subdomain': '^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
};

const compiled: Readonly<Record<NameFormat, RegExp>> = {
  'dns-label': new RegExp(patterns['dns-label']),
  'dns-1035-label': new RegExp(patterns['dns-1035-label']),
  'dns-subdomain': new RegExp(patterns['dns-subdomain']),
};

const descriptions: Readonly<Record<NameFormat, string>> = {
  'dns-label': 'lower-case letters, digits and "-", starting and ending with a letter or digit',
  'dns-1035-label': 'lower-case letters, digits and "-", starting with a letter and ending with a letter or digit',
  'dns-subdomain': 'lower-case letters, digits, "-" and ".", each part starting and ending with a letter or digit',
};

/** The format as an RE2 pattern, anchored. */
export function namePattern(format: NameFormat): string {
  return patterns[format];
}

/** The longest name a rule admits, in characters. */
export function maxNameLength(rule: NameRule): number {
  return rule.maxLength ?? (rule.format === 'dns-subdomain' ? 253 : 63);
}

/** The rule in words. */
export function describeNameRule(rule: NameRule): string {
  return `at most ${String(maxNameLength(rule))} characters: ${descriptions[rule.format]}`;
}

/** Why a name breaks a rule, or undefined when it keeps it. */
export function nameProblem(name: string, rule: NameRule): string | undefined {
  const kept = name.length <= maxNameLength(rule) && compiled[rule.format].test(name);
  return kept ? undefined : `"${name}" must be ${describeNameRule(rule)}`;
}
