import { type Value, type Values, Secret, isMap, unwrap } from './values';

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
export function keepAt(inputs: Values, old: Values, paths: readonly string[]): Values {
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
