import { types } from 'node:util';

/**
 * An error of the local control plane. Its message says what failed, where, and what to do about it; `cause`
 * is the caught error, if there was one.
 */
export class LocalControlPlaneError extends Error {
  override readonly name: string = 'LocalControlPlaneError';
}

/**
 * Whether a value is an error of any realm. Under Jest, errors of Node's own modules come from another realm
 * than the test's `Error`, so that `instanceof` is false for them.
 */
export function isError(value: unknown): value is Error {
  return types.isNativeError(value) || value instanceof Error;
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

/**
 * For `catch` of a file operation: undefined if there is no such file.
 *
 * @throws any other error
 */
export function undefinedIfMissing(error: unknown): undefined {
  if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
  throw error;
}

/** The code of a system error (`ENOENT`, `EADDRINUSE`), anywhere in the chain of causes. */
export function codeOf(error: unknown): string | undefined {
  for (let at: unknown = error; isError(at); at = at.cause) {
    const code = (at as NodeJS.ErrnoException).code;
    if (typeof code === 'string') return code;
  }
  return undefined;
}
