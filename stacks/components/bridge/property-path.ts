/** A step into a JSON value: a field's name or an index. */
export type PathStep = string | number;

/**
 * A path as Pulumi's `ignoreChanges` and `replaceOnChanges` read it: `spec.containers[0].image`, `data["app.conf"]`.
 * Source: Pulumi documentation, "ignoreChanges", property paths.
 */
export function propertyPath(path: readonly PathStep[]): string {
  return path.reduce<string>((at, step) => {
    if (typeof step === 'number') return `${at}[${step}]`;
    if (!/^[\w$-]+$/.test(step)) return `${at}["${step.replaceAll('"', String.raw`\"`)}"]`;
    return at === '' ? step : `${at}.${step}`;
  }, '');
}
