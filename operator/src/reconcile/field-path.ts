import type { KubeObject } from '../../../constructs/kube/kube-object';

type Path = readonly string[];

/** The value at a path, or undefined where the path ends early. */
export function valueAt(object: KubeObject, path: Path): unknown {
  let value: unknown = object;
  for (const step of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

/** A copy of an object without the field at a path; the object itself when there is none. */
export function without(object: KubeObject, path: Path): KubeObject {
  return valueAt(object, path) === undefined ? object : (drop(object, path, 0) as KubeObject);
}

function drop(value: unknown, path: Path, depth: number): unknown {
  const step = path[depth] ?? '';
  const { [step]: field, ...rest } = value as Record<string, unknown>;
  return depth === path.length - 1 ? rest : { ...rest, [step]: drop(field, path, depth + 1) };
}

/** An object that holds nothing but a value at a path. */
export function nested(path: Path, value: unknown): Record<string, unknown> {
  return path.reduceRight<unknown>((inner, step) => ({ [step]: inner }), value) as Record<string, unknown>;
}
