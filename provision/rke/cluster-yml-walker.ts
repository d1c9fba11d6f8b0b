import type { Problem } from '../../constructs/kube/errors';
import { isObject } from '../../constructs/kube/kube-object';
import type { FieldRules, FilePurpose, FieldRule, SecretKind } from './cluster-yml-fields';
import { REDACTED, type YamlValue } from './yaml';

/** A file that RKE is to read, and that must be validated before. */
export interface ReferencedFile {
  /** Relative to the configured directory. */
  readonly path: string;
  readonly purpose: FilePurpose;
  /** The field that names it, such as `nodes[0].ssh_key_path`. */
  readonly field: string;
}

/** A secret in the cluster.yml. Only the configuration and `secretTexts` contain its value. */
export interface FoundSecret {
  /** The field, such as `private_registries[0].password`. */
  readonly field: string;
  readonly kind: SecretKind;
}

/** How paths in a user's cluster.yml are resolved. */
export interface PathOptions {
  /**
   * The configured directory, an absolute path without links. Absolute paths must be inside.
   * @default none is accepted
   */
  readonly directory?: string;
  /**
   * Directory of the cluster.yml, relative to the configured one. Relative paths start there.
   * @default the configured one
   */
  readonly folder?: string;
}

/** Walks a parsed cluster.yml by its rules, and collects what it finds. Undefined values are left out. */
export class ClusterYmlWalker {
  readonly problems: Problem[] = [];
  readonly files: ReferencedFile[] = [];
  readonly secrets: FoundSecret[] = [];
  /** The texts of all accepted secrets, which must never be shown. */
  readonly secretTexts = new Set<string>();
  private valueCount = 0;

  constructor(private readonly options: PathOptions) {}

  /** Reads the fields of an object by their rules. */
  readFields(value: unknown, rules: FieldRules, path: string, depth = 0): AcceptedValue | undefined {
    if (!isPlainObject(value)) return this.reject(path, 'must be a mapping');
    return this.readEntries(value, path, (name, field, at) => {
      const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
      if (rule !== undefined) return this.readValue(field, rule, at, depth + 1);
      return this.reject(at, 'is no field that is taken from a cluster.yml of RKE 1.x; remove it');
    });
  }

  private readValue(value: unknown, rule: FieldRule, path: string, depth: number): AcceptedValue | undefined {
    this.valueCount += 1;
    if (depth > MAX_DEPTH || this.valueCount > MAX_VALUES) return this.rejectTooLarge(depth > MAX_DEPTH);
    // RKE treats an empty field like a missing one.
    if (value === null || value === undefined) return undefined;
    if ('fields' in rule) return this.readFields(value, rule.fields, path, depth);
    if ('list' in rule) return this.readList(value, rule.list, path, depth);
    if ('map' in rule) {
      if (!isPlainObject(value)) return this.reject(path, 'must be a mapping');
      return this.readEntries(value, path, (_, item, at) => this.readValue(item, rule.map, at, depth + 1));
    }
    if ('json' in rule) return this.recordSecret(this.readJson(value, path, depth), rule.secret, path);
    if ('file' in rule) return this.readFilePath(value, rule.file, path);
    if ('refused' in rule) return isEmpty(value) ? undefined : this.reject(path, rule.refused);
    if ('text' in rule) return this.readText(value, rule.secret, path);
    const type = 'number' in rule ? 'number' : 'boolean';
    if (typeof value !== type || (type === 'number' && !Number.isFinite(value))) {
      return this.reject(path, `must be a ${type}`);
    }
    return acceptAsIs(value as number | boolean);
  }

  private readList(value: unknown, rule: FieldRule, path: string, depth: number): AcceptedValue | undefined {
    if (!Array.isArray(value)) return this.reject(path, 'must be a list');
    const taken = this.mapWithinLimit(value, (item, i) => this.readValue(item, rule, `${path}[${i}]`, depth + 1));
    return { value: taken.map((item) => item.value), redacted: taken.map((item) => item.redacted) };
  }

  private readText(value: unknown, kind: SecretKind | undefined, path: string): AcceptedValue | undefined {
    if (value === '' && kind === 'sshKey') return undefined;
    if (typeof value === 'string') {
      // A private key is a secret in any field.
      const found = kind ?? (value.includes('PRIVATE KEY-----') ? 'inline' : undefined);
      return this.recordSecret(acceptAsIs(value), found, path);
    }
    if (typeof value === 'boolean' || Number.isSafeInteger(value)) {
      return this.recordSecret(acceptAsIs(String(value)), kind, path);
    }
    return this.reject(path, 'must be a text; put it in quotes');
  }

  private recordSecret(
    taken: AcceptedValue | undefined,
    kind: SecretKind | undefined,
    path: string,
  ): AcceptedValue | undefined {
    if (taken === undefined || kind === undefined || isEmpty(taken.value)) return taken;
    this.secrets.push({ field: path, kind });
    if (kind === 'sshKey') return undefined;
    for (const text of stringsOf(taken.value)) this.secretTexts.add(text);
    return { value: taken.value, redacted: REDACTED };
  }

  private readFilePath(value: unknown, purpose: FilePurpose, path: string): AcceptedValue | undefined {
    if (value === '') return undefined;
    if (typeof value !== 'string') return this.reject(path, 'must be a path');
    if (purpose === 'addon' && value.startsWith('http')) {
      return this.reject(
        path,
        'is, or would be taken for, an address to fetch; only files in the configured directory are read: put the manifest there',
      );
    }
    const resolved = resolvePath(value, this.options);
    if ('refused' in resolved) return this.reject(path, resolved.refused);
    this.files.push({ path: resolved.path, purpose, field: path });
    return acceptAsIs(resolved.path);
  }

  private readJson(value: unknown, path: string, depth: number): AcceptedValue | undefined {
    if (Array.isArray(value)) return this.readList(value, { json: true }, path, depth);
    if (isPlainObject(value)) {
      return this.readEntries(value, path, (_, item, at) => this.readValue(item, { json: true }, at, depth + 1));
    }
    if (typeof value === 'string') return this.readText(value, undefined, path);
    if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return acceptAsIs(value);
    return this.reject(path, 'must be a text, a number, a boolean, a list or a mapping');
  }

  private readEntries(
    value: Readonly<Record<string, unknown>>,
    path: string,
    one: (name: string, item: unknown, at: string) => AcceptedValue | undefined,
  ): AcceptedValue {
    const taken = this.mapWithinLimit(Object.entries(value), ([name, item]): [string, AcceptedValue] | undefined => {
      const result = one(name, item, joinPath(path, name));
      return result === undefined ? undefined : [name, result];
    });
    return {
      value: Object.fromEntries(taken.map(([name, item]) => [name, item.value])),
      redacted: Object.fromEntries(taken.map(([name, item]) => [name, item.redacted])),
    };
  }

  /** Maps items until the limit of values is exceeded. */
  private mapWithinLimit<T, R>(items: readonly T[], one: (item: T, i: number) => R | undefined): R[] {
    const results: R[] = [];
    for (const [i, item] of items.entries()) {
      if (this.valueCount > MAX_VALUES) break;
      const result = one(item, i);
      if (result !== undefined) results.push(result);
    }
    return results;
  }

  private reject(path: string, message: string): AcceptedValue | undefined {
    if (this.problems.length < MAX_LISTED_PROBLEMS) this.problems.push({ path, message });
    return undefined;
  }

  private rejectTooLarge(deep: boolean): AcceptedValue | undefined {
    const message = deep
      ? `is nested more than ${MAX_DEPTH} deep`
      : `holds more than ${MAX_VALUES} values; is it made of aliases of aliases?`;
    if (!this.problems.some((problem) => problem.message === message)) this.problems.push({ path: '', message });
    return undefined;
  }
}

const MAX_DEPTH = 40;
/** More than any real cluster.yml has. Nested aliases may expand to billions. */
const MAX_VALUES = 100_000;
const MAX_LISTED_PROBLEMS = 100;

/** An accepted value, and the same redacted for people. */
interface AcceptedValue {
  readonly value: YamlValue;
  readonly redacted: YamlValue;
}

const acceptAsIs = (value: string | number | boolean): AcceptedValue => ({ value, redacted: value });

/** All texts in an accepted value, which is a tree of bounded size. */
function stringsOf(value: YamlValue): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsOf) : [];
}

/** Whether a value is an object as parsed from YAML: no Date, no Map. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function isEmpty(value: unknown): boolean {
  if (value === false || value === '' || value === null || value === undefined) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/**
 * The path of a field. A name comes from the user, so it is shortened and quoted unless it is a plain word.
 */
function joinPath(path: string, name: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(name)) return path === '' ? name : `${path}.${name}`;
  return `${path}[${JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}...` : name)}]`;
}

/** A path relative to the configured directory, or why it is rejected. */
type ResolvedPath = { readonly path: string } | { readonly refused: string };

/**
 * Resolves a path of a cluster.yml by its text alone. The caller must still check with `realpath` that no
 * link leads out of the directory, and open the path that `realpath` returned.
 */
function resolvePath(path: string, { directory, folder = '' }: PathOptions): ResolvedPath {
  if (path.length > MAX_LENGTH) return { refused: `has more than ${MAX_LENGTH} characters` };
  if (path.startsWith('~'))
    return { refused: 'starts in a home directory; only files in the configured directory are read' };
  const absolute = path.startsWith('/');
  const root = segments(directory ?? '/');
  const stack = absolute ? [] : segments(folder);
  for (const segment of segments(path)) {
    if (segment !== '..') stack.push(segment);
    else if (stack.pop() === undefined) return OUTSIDE_DIRECTORY;
  }
  if (absolute && (directory === undefined || !root.every((segment, i) => stack[i] === segment)))
    return OUTSIDE_DIRECTORY;
  const relative = absolute ? stack.slice(root.length) : stack;
  if (relative.length === 0) return { refused: 'names no file' };
  if (!relative.every((segment) => SEGMENT.test(segment))) {
    return { refused: 'must be made of letters, digits, "_", "-", "." and "/", without hidden parts' };
  }
  const resolved = relative.join('/');
  // RKE slices the first two characters of the path. Source: privateKeyPath of RKE 1.6 (hosts/tunnel.go).
  if (resolved.length < 2) return { refused: 'has one character, which RKE crashes on; give the file a longer name' };
  return { path: resolved };
}

const OUTSIDE_DIRECTORY: ResolvedPath = { refused: 'leaves the configured directory; only files in it are read' };

/** A part of a path: not hidden, not `..`, and not like an option of a command. */
const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;
const MAX_LENGTH = 1024;

const segments = (path: string): string[] => path.split('/').filter((segment) => segment !== '' && segment !== '.');
