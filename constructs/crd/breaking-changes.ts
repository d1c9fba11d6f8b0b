import { isObject, type KubeObject } from '../kube/kube-object';

/** Something that worked with the CRD before and does not any more. */
export interface BreakingChange {
  /** The version and field, for example `v1 spec.image`; the CRD's own field, for example `spec.scope`, otherwise. */
  readonly path: string;
  readonly message: string;
}

/**
 * What a new CRD breaks for the clients of the old one: objects that are no longer valid, fields and versions
 * that no longer exist, names and paths under which it can no longer be reached.
 *
 * Source: Kubernetes' "Changing the API". Looser bounds, patterns and rules are not breaking; a changed
 * default is.
 *
 * @param before a CRD (`apiextensions.k8s.io/v1`) of the last release
 * @param after the CRD that takes its place
 */
export function breakingChanges(before: KubeObject, after: KubeObject): readonly BreakingChange[] {
  const [old, now] = [before.spec as CrdSpec, after.spec as CrdSpec];
  const changes: BreakingChange[] = [];
  const same = (path: string, a: string | undefined, b: string | undefined): void => {
    if (a !== b) changes.push({ path, message: `was ${String(a)}, is ${String(b)}` });
  };
  same('spec.group', old.group, now.group);
  same('spec.scope', old.scope, now.scope);
  same('spec.names.kind', old.names.kind, now.names.kind);
  same('spec.names.plural', old.names.plural, now.names.plural);
  same('spec.names.singular', old.names.singular, now.names.singular);
  for (const name of old.names.shortNames ?? []) {
    if (now.names.shortNames?.includes(name) !== true)
      changes.push({ path: 'spec.names.shortNames', message: `"${name}" is gone` });
  }
  for (const version of old.versions) changes.push(...versionChanges(version, now.versions));
  return changes;
}

interface CrdSpec {
  readonly group: string;
  readonly scope: string;
  readonly names: {
    readonly kind: string;
    readonly plural: string;
    readonly singular?: string;
    readonly shortNames?: readonly string[];
  };
  readonly versions: readonly CrdVersion[];
}

interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly schema: { readonly openAPIV3Schema: Readonly<Record<string, unknown>> };
  readonly subresources?: { readonly status?: object; readonly scale?: Readonly<Record<string, string>> };
}

function versionChanges(old: CrdVersion, versions: readonly CrdVersion[]): BreakingChange[] {
  const now = versions.find(({ name }) => name === old.name);
  if (now === undefined) {
    return [
      {
        path: old.name,
        message: 'the version is gone; keep it, at least with served: false, while objects are stored in it',
      },
    ];
  }
  const changes: BreakingChange[] = [];
  if (old.served && !now.served) changes.push({ path: old.name, message: 'the version is no longer served' });
  if (old.subresources?.status !== undefined && now.subresources?.status === undefined) {
    changes.push({ path: `${old.name} subresources.status`, message: 'is gone' });
  }
  const [scale, nowScale] = [old.subresources?.scale, now.subresources?.scale];
  for (const key of Object.keys(scale ?? {})) {
    if (scale?.[key] === nowScale?.[key]) continue;
    changes.push({
      path: `${old.name} subresources.scale.${key}`,
      message: `was ${String(scale?.[key])}, is ${nowScale?.[key] ?? 'gone'}`,
    });
  }
  for (const change of schemaChanges(old.schema.openAPIV3Schema, now.schema.openAPIV3Schema, '')) {
    changes.push({ path: `${old.name} ${change.path === '' ? '(root)' : change.path}`, message: change.message });
  }
  return changes;
}

type SchemaNode = Readonly<Record<string, unknown>>;
type Report = (message: string) => void;

const LOWER_BOUNDS = ['minimum', 'minLength', 'minItems', 'minProperties'] as const;
const UPPER_BOUNDS = ['maximum', 'maxLength', 'maxItems', 'maxProperties'] as const;

/** Keywords that may be removed, but neither added nor changed. */
const CONSTRAINTS = ['pattern', 'multipleOf', 'allOf', 'anyOf', 'oneOf', 'not'] as const;

/** Keywords that may not change, except that a default may be added. */
const IMMUTABLE_KEYWORDS = [
  'default',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-int-or-string',
  'x-kubernetes-embedded-resource',
] as const;

/** What became narrower in a schema and all below it. Paths start at `path`; the root's is empty. */
function schemaChanges(old: SchemaNode, now: SchemaNode, path: string): BreakingChange[] {
  const changes: BreakingChange[] = [];
  const report: Report = (message) => void changes.push({ path, message });
  if (old.type !== now.type) {
    report(`its type was ${formatValue(old.type)}, is ${formatValue(now.type)}`);
    return changes;
  }
  fixedChanges(old, now, report);
  boundChanges(old, now, report);
  formatChange(old.format, now.format, report);
  enumChanges(old.enum, now.enum, report);
  ruleChanges(old, now, report);
  if (old.nullable === true && now.nullable !== true) report('it can no longer be null');
  return [...changes, ...fieldChanges(old, now, path), ...itemChanges(old, now, path)];
}

function fixedChanges(old: SchemaNode, now: SchemaNode, report: Report): void {
  for (const keyword of IMMUTABLE_KEYWORDS) {
    if (formatValue(old[keyword]) === formatValue(now[keyword])) continue;
    if (keyword === 'default' && old.default === undefined) continue;
    report(`${keyword} was ${formatValue(old[keyword])}, is ${formatValue(now[keyword])}`);
  }
  for (const keyword of CONSTRAINTS) {
    if (now[keyword] === undefined || formatValue(old[keyword]) === formatValue(now[keyword])) continue;
    report(
      old[keyword] === undefined
        ? `${keyword} ${formatValue(now[keyword])} is new`
        : `${keyword} was ${formatValue(old[keyword])}, is ${formatValue(now[keyword])}`,
    );
  }
  const keeps = 'x-kubernetes-preserve-unknown-fields';
  if (old[keeps] === true && now[keeps] !== true) report('fields that it does not name are no longer kept');
}

function boundChanges(old: SchemaNode, now: SchemaNode, report: Report): void {
  const changed = (keyword: string, isTighter: (a: number, b: number) => boolean): void => {
    const [a, b] = [old[keyword], now[keyword]];
    if (typeof b !== 'number') return;
    if (typeof a !== 'number') report(`${keyword} ${b} is new`);
    else if (isTighter(a, b)) report(`${keyword} was ${a}, is ${b}`);
  };
  for (const keyword of LOWER_BOUNDS) changed(keyword, (a, b) => b > a);
  for (const keyword of UPPER_BOUNDS) changed(keyword, (a, b) => b < a);
  for (const [exclusive, bound] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (now[exclusive] === true && old[exclusive] !== true && old[bound] === now[bound]) {
      report(`the ${bound} ${formatValue(now[bound])} itself is no longer admitted`);
    }
  }
}

function formatChange(old: unknown, now: unknown, report: Report): void {
  if (now === undefined || now === old || (old === 'int32' && now === 'int64')) return;
  report(
    old === undefined
      ? `the format ${formatValue(now)} is new`
      : `its format was ${formatValue(old)}, is ${formatValue(now)}`,
  );
}

function enumChanges(old: unknown, now: unknown, report: Report): void {
  if (!Array.isArray(now)) return;
  if (!Array.isArray(old)) {
    report(`it admits only ${formatValue(now)} now`);
    return;
  }
  const kept = new Set(now.map(formatValue));
  for (const value of old)
    if (!kept.has(formatValue(value))) report(`the value ${formatValue(value)} is no longer admitted`);
}

function ruleChanges(old: SchemaNode, now: SchemaNode, report: Report): void {
  const known = new Set([...rules(old).map(({ rule }) => rule), ...patternAsRule(old.pattern)]);
  for (const { rule, message } of rules(now)) if (!known.has(rule)) report(`the rule ${rule} (${message}) is new`);
}

/** The CEL rule that is equivalent to a pattern; none where a CEL string literal would change the pattern. */
function patternAsRule(pattern: unknown): readonly string[] {
  return typeof pattern === 'string' && !/['\\\n\r]/.test(pattern) ? [`self.matches('${pattern}')`] : [];
}

function fieldChanges(old: SchemaNode, now: SchemaNode, path: string): BreakingChange[] {
  const [before, after] = [fields(old), fields(now)];
  const changes: BreakingChange[] = [];
  for (const [key, field] of Object.entries(before)) {
    const at = path === '' ? key : `${path}.${key}`;
    const next = Object.hasOwn(after, key) ? after[key] : undefined;
    if (next !== undefined) changes.push(...schemaChanges(field, next, at));
    else if (!preservesUnknownFields(now)) changes.push({ path: at, message: 'the field is gone' });
  }
  const required = new Set(names(old.required));
  for (const key of names(now.required)) {
    if (required.has(key) || after[key]?.default !== undefined) continue;
    const at = path === '' ? key : `${path}.${key}`;
    changes.push({
      path: at,
      message: Object.hasOwn(before, key) ? 'the field is required now' : 'a required field is new',
    });
  }
  return changes;
}

function itemChanges(old: SchemaNode, now: SchemaNode, path: string): BreakingChange[] {
  const changes: BreakingChange[] = [];
  if (isObject(old.items) && isObject(now.items)) changes.push(...schemaChanges(old.items, now.items, `${path}[]`));
  if (isObject(old.additionalProperties)) {
    if (isObject(now.additionalProperties)) {
      changes.push(...schemaChanges(old.additionalProperties, now.additionalProperties, `${path}.*`));
    } else if (!preservesUnknownFields(now)) changes.push({ path, message: 'it no longer takes any key' });
  }
  return changes;
}

function preservesUnknownFields(schema: SchemaNode): boolean {
  return schema['x-kubernetes-preserve-unknown-fields'] === true;
}

function fields(schema: SchemaNode): Readonly<Record<string, SchemaNode>> {
  return isObject(schema.properties) ? (schema.properties as Readonly<Record<string, SchemaNode>>) : {};
}

function names(value: unknown): readonly string[] {
  return Array.isArray(value) ? (value as string[]) : [];
}

function rules(schema: SchemaNode): readonly { rule: string; message?: string }[] {
  const value = schema['x-kubernetes-validations'];
  return Array.isArray(value) ? (value as { rule: string }[]) : [];
}

/** A value in a message, and for comparison: keys in one order. */
function formatValue(value: unknown): string {
  if (value === undefined) return 'absent';
  return JSON.stringify(value, (_, part: unknown) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}
