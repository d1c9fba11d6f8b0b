import { waitFor } from '../../../local/testing';
import { ApiError, TransportError } from '../../../operator/client/errors';

type Attempt<T> = { readonly value: T | undefined } | { readonly error: unknown };

/**
 * Does what a user does who tries again until the server has taken it: the faults of a test may be the server's own.
 *
 * @returns undefined when there is nothing to do it to (404), or it was done by an attempt whose answer was lost (409 of a create)
 * @throws ApiError when the server refuses it; Error when it has not taken it after two minutes
 */
export async function insist<T>(what: string, act: () => Promise<T>): Promise<T | undefined> {
  const options = { describe: `the server to take it: ${what}`, timeout: 120_000, interval: 200 };
  const attempt = await waitFor(() => tried(act), options);
  if ('error' in attempt) throw attempt.error;
  return attempt.value;
}

async function tried<T>(act: () => Promise<T>): Promise<Attempt<T> | undefined> {
  try {
    return { value: await act() };
  } catch (error) {
    if (error instanceof TransportError) return undefined;
    if (!(error instanceof ApiError)) return { error };
    if (error.code === 404 || error.reason === 'AlreadyExists') return { value: undefined };
    // 429 and 5xx are a server that starts; a Conflict is a patch that met another.
    return error.code === 429 || error.code >= 500 || error.code === 409 ? undefined : { error };
  }
}
