/** A rule for an object's `metadata.name`, besides those that the API has for every name. */
export interface NameRule {
  readonly format: NameFormat;
  /** In characters. @default 63 for labels, 253 for subdomains */
  readonly maxLength?: number;
}

/**
 * Name formats of Kubernetes that a child's name or label may require. Source: RFC 1123 and 1035, as the API
 * checks.
 */
export type NameFormat = 'dns-label' | 'dns-subdomain' | 'dns-1035-label';

/** Why a name breaks a rule, or undefined when it satisfies it. */
export function nameProblem(name: string, rule: NameRule): string | undefined {
  const kept = name.length <= maxNameLength(rule) && compiled[rule.format].test(name);
  return kept ? undefined : `"${name}" must be ${describeNameRule(rule)}`;
}

/** The rule in words. */
export function describeNameRule(rule: NameRule): string {
  return `at most ${String(maxNameLength(rule))} characters: ${descriptions[rule.format]}`;
}

/** The maximum length of a name under a rule, in characters. */
export function maxNameLength(rule: NameRule): number {
  return rule.maxLength ?? (rule.format === 'dns-subdomain' ? 253 : 63);
}

/** The format as an RE2 pattern, anchored. */
export function namePattern(format: NameFormat): string {
  return patterns[format];
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

/** Whether a text can be the reference of an image: anything without spaces. The registry decides what exists. */
export function isImageReference(text: string): boolean {
  return /^\S+$/.test(text);
}
