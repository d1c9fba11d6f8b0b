import { isObject, type KubeObject } from '../kube/kube-object';
import { propertyPath, RenderError, type PathStep } from '../kube/errors';

/**
 * Children depend on something else than the object, or the key, that they are rendered from: on the clock, a random
 * number, a counter. The operator would write them again and again.
 */
export class ImpureError extends RenderError {
  override readonly name = 'ImpureError';
}

/** A rendered child, as far as it is compared. */
interface Child {
  readonly type: { readonly kind: string };
  readonly manifest: KubeObject;
}

/** How far the clock is set forward, in milliseconds: every part of a date, and of a time of day, is another one. */
const SHIFT_MS = ((401 * 24 + 1) * 60 + 1) * 60_000 + 1_001;

/** What the clock was before it was set; undefined while it is the real one. */
let real: { readonly Date: DateConstructor; readonly ownNow: PropertyDescriptor | undefined } | undefined;

/**
 * Renders once more, an imagined 401 days later, and compares. Random numbers and counters differ by themselves.
 *
 * @param owner kind and name of the owner, for the error
 * @param of the function, for example `HelloApp.children`, and what it renders from
 * @param rendered what was rendered before
 * @throws ImpureError with the path of the first difference; its values, which may be secret, are not shown
 */
export function assertPure(
  owner: string,
  { name, from }: { readonly name: string; readonly from: 'object' | 'key' },
  rendered: readonly Child[],
  again: () => readonly Child[],
): void {
  const second = renderLater(again);
  const where = firstDifference(rendered, second);
  if (where === undefined) return;
  const message =
    `${name} is not pure: two renderings of the same ${from} differ at ${where}. Render from the ${from} alone, without the clock ` +
    '(Date), random numbers, counters or files; what only another system knows, an effect finds out';
  throw new ImpureError(owner, message);
}

function renderLater<T>(again: () => T): T {
  // A rendering that a time limit has stopped runs no `finally`.
  restoreClock();
  const { Date: RealDate } = globalThis;
  const now = performance.now.bind(performance);
  real = { Date: RealDate, ownNow: Object.getOwnPropertyDescriptor(performance, 'now') };
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, values: unknown[], self) =>
      Reflect.construct(target, values.length === 0 ? [RealDate.now() + SHIFT_MS] : values, self) as Date,
    apply: () => new RealDate(RealDate.now() + SHIFT_MS).toString(),
    get: (target, property) =>
      property === 'now' ? () => RealDate.now() + SHIFT_MS : (Reflect.get(target, property) as unknown),
  });
  performance.now = () => now() + SHIFT_MS;
  try {
    return again();
  } finally {
    restoreClock();
  }
}

/** Sets the clock back to the real one. */
function restoreClock(): void {
  if (real === undefined) return;
  globalThis.Date = real.Date;
  // Usually it is a method of the prototype.
  if (real.ownNow === undefined) Reflect.deleteProperty(performance, 'now');
  else Object.defineProperty(performance, 'now', real.ownNow);
  real = undefined;
}

/** Where two renderings differ first; undefined when they do not. */
function firstDifference(a: readonly Child[], b: readonly Child[]): string | undefined {
  const titles = [...a, ...b].map(({ type, manifest }) => `${type.kind} "${manifest.metadata.name}"`);
  for (const [i, { type, manifest }] of a.entries()) {
    const title = titles[i] ?? '';
    const other = b[i];
    if (other === undefined || title !== titles[a.length + i]) return `${title}, which only one of them has`;
    const path = differenceAt(manifest, other.manifest, []);
    if (path !== undefined) return `${type.kind} "${manifest.metadata.name}", ${propertyPath(path)}`;
  }
  const more = titles[2 * a.length];
  return more === undefined ? undefined : `${more}, which only one of them has`;
}

function differenceAt(a: unknown, b: unknown, path: readonly PathStep[]): readonly PathStep[] | undefined {
  if (Array.isArray(a) && Array.isArray(b)) {
    for (let i = 0; i < Math.max(a.length, b.length); i++) {
      const found = differenceAt(a[i], b[i], [...path, i]);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (!isObject(a) || !isObject(b)) return Object.is(a, b) ? undefined : path;
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const found = differenceAt(a[name], b[name], [...path, name]);
    if (found !== undefined) return found;
  }
  return undefined;
}
