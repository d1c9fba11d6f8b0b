import type { Problem } from '../core/errors';

/** Props that cannot be made into objects; all that is wrong with them, at once. */
export class InvalidPropsError extends Error {
  override readonly name = 'InvalidPropsError';
  constructor(
    /** The construct's class and path, for example `Platform kindred`. */
    readonly construct: string,
    readonly problems: readonly Problem[],
    options?: { readonly cause?: unknown },
  ) {
    const lines = problems.map(({ path, message }) => `  ${path === '' ? '' : `${path}: `}${message}`);
    super([`${construct} has invalid props:`, ...lines].join('\n'), options);
  }
}
