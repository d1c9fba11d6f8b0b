import { wireCopy } from './wire-copy';

type Fields = Record<string, unknown>;

/** RFC 7386. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Fields = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) Reflect.deleteProperty(result, name);
    else if (value !== undefined) result[name] = mergePatch(result[name], value);
  }
  return result;
}

/** One operation of RFC 6902. */
export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test';
  /** A path of fields only; lists are not walked. */
  readonly path: string;
  readonly value?: unknown;
}

/** RFC 6902, as far as paths of fields go. @throws Error when a test fails or a path does not exist */
export function jsonPatch(target: object, operations: readonly JsonPatchOperation[]): object {
  const result = wireCopy(target);
  for (const { op, path, value } of operations) {
    const steps = path
      .slice(1)
      .split('/')
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = steps.pop() ?? '';
    const parent = steps.reduce<Fields>((at, step) => at[step] as Fields, result as Fields);
    if (op !== 'add' && !(last in parent))
      throw new Error(`${op} operation does not apply: doc is missing path: "${path}"`);
    if (op === 'test') {
      if (JSON.stringify(parent[last]) !== JSON.stringify(value))
        throw new Error(`testing value ${path} failed: test failed`);
    } else if (op === 'remove') Reflect.deleteProperty(parent, last);
    else parent[last] = wireCopy(value);
  }
  return result;
}
