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
export function secretly(value: Value): Secret {
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

/** Every text inside secrets, for searching what must not show them. */
export function secretTexts(value: Value, within = false): string[] {
  if (value instanceof Secret) return secretTexts(value.value, true);
  if (Array.isArray(value)) return value.flatMap((item) => secretTexts(item, within));
  if (isMap(value)) return Object.values(value).flatMap((item) => secretTexts(item, within));
  return within && typeof value === 'string' && value !== '' ? [value] : [];
}
