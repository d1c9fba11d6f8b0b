/** Property values as the engine keeps them: JSON, plus secrets, plus (in a preview) what is not known yet. */
export type Value = null | boolean | number | string | Secret | Unknown | Value[] | { [key: string]: Value };

/** The properties of a resource. */
export type Values = Record<string, Value>;

/** A value without secrets and unknowns. */
export type Plain = null | boolean | number | string | Plain[] | { [key: string]: Plain };

/** Marks a value as secret. Never printed: whoever formats one by mistake sees `[secret]`. */
export class Secret {
  constructor(readonly value: Value) {}
  toString(): string {
    return '[secret]';
  }
  toJSON(): string {
    return '[secret]';
  }
}

/** A value that only the real run will tell. */
export class Unknown {
  readonly unknown = true;
}

/** The one unknown value. */
export const unknown = new Unknown();

/** Whether a value is a JSON object, and neither an array nor a marker. */
export function isMap(value: Value | undefined): value is { [key: string]: Value } {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Secret) &&
    !(value instanceof Unknown)
  );
}

/** The value without a secret mark at its top. */
export function unwrap(value: Value): Exclude<Value, Secret> {
  let at = value;
  while (at instanceof Secret) at = at.value;
  return at;
}

/**
 * The text that stands at a place, secret or not.
 *
 * @param place - where it stands, for the error
 * @throws TypeError when it is no text; the error never shows what it is instead, which may be secret
 */
export function textOf(value: Value | undefined, place: string): string {
  const open = value === undefined ? undefined : unwrap(value);
  if (typeof open === 'string') return open;
  throw new TypeError(`${place} must be a text, and is ${kindOf(open)}`);
}

function kindOf(value: Exclude<Value, Secret> | undefined): string {
  if (value === undefined) return 'absent';
  if (value instanceof Unknown) return 'not known yet';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return isMap(value) ? 'a map' : `a ${typeof value}`;
}

/** The map without a key. */
export function without<T>(map: Readonly<Record<string, T>>, key: string): Record<string, T> {
  return Object.fromEntries(Object.entries(map).filter(([other]) => other !== key));
}

/** Marks once. */
export function toSecret(value: Value): Secret {
  return value instanceof Secret ? value : new Secret(value);
}

/** Whether there is an unknown anywhere inside. */
export function hasUnknown(value: Value): boolean {
  return some(value, (leaf) => leaf instanceof Unknown);
}

/** Whether there is a secret anywhere inside. */
export function hasSecret(value: Value): boolean {
  return some(value, (part) => part instanceof Secret);
}

function some(value: Value, test: (part: Value) => boolean): boolean {
  if (test(value)) return true;
  if (value instanceof Secret) return some(value.value, test);
  if (Array.isArray(value)) return value.some((item) => some(item, test));
  return isMap(value) && Object.values(value).some((item) => some(item, test));
}

/**
 * The value as plain JSON, secrets opened.
 *
 * @throws Error when something in it is unknown
 */
export function plain(value: Value): Plain {
  const open = unwrap(value);
  if (open instanceof Unknown) throw new Error('a value is needed that is not known yet');
  if (Array.isArray(open)) return open.map(plain);
  if (isMap(open)) return Object.fromEntries(Object.entries(open).map(([key, item]) => [key, plain(item)]));
  return open;
}

/** {@link plain} of a resource's properties. */
export function plainValues(values: Values): Record<string, Plain> {
  return plain(values) as Record<string, Plain>;
}

/** Whether two values are the same, whatever is marked as secret. An unknown is like nothing, not even another. */
export function equal(a: Value | undefined, b: Value | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const left = unwrap(a);
  const right = unwrap(b);
  if (left instanceof Unknown || right instanceof Unknown) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    return Array.isArray(left) && Array.isArray(right) && left.length === right.length
      ? left.every((item, at) => equal(item, right[at]))
      : false;
  }
  if (isMap(left) && isMap(right)) return changedKeys(left, right).length === 0;
  return left === right;
}

/** Keys whose values differ. */
export function changedKeys(before: Values, after: Values): string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].filter((key) => !equal(before[key], after[key]));
}

/** `target`, with secret marks wherever `source` has one at the same place. */
export function mirrorSecrets(target: Value, source: Value | undefined): Value {
  if (source === undefined || target instanceof Secret) return target;
  if (source instanceof Secret) return new Secret(target);
  if (Array.isArray(target) && Array.isArray(source)) {
    return target.map((item, at) => mirrorSecrets(item, source[at]));
  }
  if (!isMap(target) || !isMap(source)) return target;
  return Object.fromEntries(Object.entries(target).map(([key, item]) => [key, mirrorSecrets(item, source[key])]));
}

// How the SDK writes what JSON has no word for. The constants are the protocol's own (sdk/go/common/resource/properties.go).
const signatureKey = '4dabf18193072939515e22adb298388d';
const secretSignature = '1b47061264138c4ac30d75fd1eb44270';
const resourceSignature = '5cf8f73096256a8f31e491e813e4eb8e';
const outputSignature = 'd0e6a833031e9bbcd3f4e8bde6ca49a4';

/** Stands for an unknown on the wire. */
export const unknownOnWire = '04da6b54-80e4-46f7-96ec-b56ff0331ba9';

/** JSON as the protocol carries it. */
type Wire = null | boolean | number | string | Wire[] | { [key: string]: Wire };

/** Reads the properties of a request. */
export function valuesFromWire(wire: { [key: string]: Wire }): Values {
  return Object.fromEntries(Object.entries(wire).map(([key, item]) => [key, fromWire(item)]));
}

/** Reads a value. A reference to a resource becomes its ID, as for a provider that knows no references. */
function fromWire(wire: Wire): Value {
  if (wire === unknownOnWire) return unknown;
  if (typeof wire !== 'object' || wire === null) return wire;
  if (Array.isArray(wire)) return wire.map(fromWire);
  const { [signatureKey]: signature, ...rest } = wire;
  switch (signature) {
    case undefined:
      return valuesFromWire(wire);
    case secretSignature:
      return marked(fromWire(rest.value ?? null));
    case resourceSignature:
      return rest.id === undefined || rest.id === '' ? fromWire(rest.urn ?? '') : fromWire(rest.id);
    case outputSignature: {
      const value = rest.value === undefined ? unknown : fromWire(rest.value);
      return rest.secret === true ? marked(value) : value;
    }
    default:
      throw new Error('assets and archives are not supported by the test engine');
  }
}

function marked(value: Value): Secret {
  return value instanceof Secret ? value : new Secret(value);
}

/** Writes properties for a response. */
export function valuesToWire(values: Values): { [key: string]: Wire } {
  return Object.fromEntries(Object.entries(values).map(([key, item]) => [key, toWire(item)]));
}

/** Writes a value. */
function toWire(value: Value): Wire {
  if (value instanceof Unknown) return unknownOnWire;
  if (value instanceof Secret) return { [signatureKey]: secretSignature, value: toWire(value.value) };
  if (Array.isArray(value)) return value.map(toWire);
  return isMap(value) ? valuesToWire(value) : value;
}

/** One step of a path; `*` stands for every key or item. */
type Segment = string | number;

/**
 * Reads a property path as Pulumi writes them: `spec.replicas`, `spec.containers[0].image`, `data["a.b"]`, `items[*]`.
 *
 * @throws Error when the path is malformed
 */
export function parsePath(path: string): readonly Segment[] {
  const pattern = /\.?(?:\["((?:[^"\\]|\\.)*)"\]|\[(\d+|\*)\]|([^.[\]"]+))/gy;
  const segments: Segment[] = [];
  while (pattern.lastIndex < path.length) {
    const at = pattern.lastIndex;
    const match = pattern.exec(path);
    if (match === null) throw new Error(`the property path "${path}" is malformed at character ${at + 1}`);
    const [, quoted, index, name] = match;
    if (quoted !== undefined) segments.push(quoted.replace(/\\(.)/g, '$1'));
    else if (index !== undefined) segments.push(index === '*' ? '*' : Number(index));
    else segments.push(name!);
  }
  return segments;
}

/** `inputs` with the values that `old` has at the paths: what `ignoreChanges` means. */
export function applyIgnoreChanges(inputs: Values, old: Values, paths: readonly string[]): Values {
  return paths.reduce((values, path) => keep(values, old, parsePath(path)) as Values, inputs);
}

function keep(now: Value | undefined, before: Value | undefined, path: readonly Segment[]): Value | undefined {
  const [head, ...rest] = path;
  if (head === undefined) return before;
  if (now instanceof Secret) {
    const kept = keep(now.value, before === undefined ? undefined : unwrap(before), path);
    return kept === undefined ? undefined : new Secret(kept);
  }
  const old = before === undefined ? undefined : unwrap(before);
  if (Array.isArray(now)) {
    const indices = head === '*' ? now.keys() : [Number(head)];
    const items = [...now];
    for (const index of indices) {
      const item = keep(now[index], Array.isArray(old) ? old[index] : undefined, rest);
      if (item !== undefined) items[index] = item;
    }
    return items;
  }
  if (now !== undefined && !isMap(now)) return now;
  const oldMap = isMap(old) ? old : {};
  const result: Values = { ...now };
  const keys = head === '*' ? Object.keys({ ...now, ...oldMap }) : [String(head)];
  for (const key of keys) {
    const item = keep(now?.[key], oldMap[key], rest);
    if (item === undefined) Reflect.deleteProperty(result, key);
    else result[key] = item;
  }
  // A path into nothing, on both sides, makes no empty objects on its way.
  return now === undefined && Object.keys(result).length === 0 ? undefined : result;
}

/** Whether the changed path lies at or below one of the paths. Both as Pulumi writes them. */
export function covers(paths: readonly string[], changed: string): boolean {
  const below = parsePath(changed);
  return paths.some((path) => {
    const segments = parsePath(path);
    return segments.length <= below.length && segments.every((part, at) => part === '*' || part === below[at]);
  });
}
