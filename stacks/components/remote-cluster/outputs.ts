import * as pulumi from '@pulumi/pulumi';

/** Whether a value is only known once something else stands. */
export function isDeferred(value: unknown): boolean {
  return pulumi.Output.isInstance(value) || value instanceof Promise;
}

/** A value in which each Output is replaced by what `stand` gives for its path, such as `nodes[0].address`. */
export function replaceOutputs(value: unknown, path: string, stand: (path: string) => unknown): unknown {
  if (isDeferred(value)) return stand(path);
  if (Array.isArray(value)) return value.map((item, i) => replaceOutputs(item, `${path}[${i}]`, stand));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, replaceOutputs(item, path === '' ? key : `${path}.${key}`, stand)]),
  );
}

/** Whether an Output stands anywhere in a value. */
export function hasOutputs(value: unknown): boolean {
  let found = false;
  replaceOutputs(value, '', () => (found = true));
  return found;
}
