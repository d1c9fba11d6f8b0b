/** How often and how long a request is repeated when the server asks for patience. */
export interface RetryPolicy {
  /** Attempts in all, the first included. @default 5 */
  readonly maxAttempts: number;
  /** The waits of one request may not add up to more than this, in milliseconds. @default 30000 */
  readonly maxWaitMs: number;
}

/** See `RetryPolicy`. */
export const DEFAULT_RETRY_POLICY: RetryPolicy = { maxAttempts: 5, maxWaitMs: 30_000 };

/** What the server answered, as far as it decides about another attempt. */
export interface Refusal {
  readonly code: number;
  readonly retryAfterSeconds?: number;
}

/** 429 without a `Retry-After`: wait this long, in seconds. */
const DEFAULT_WAIT_SECONDS = 1;

/**
 * After how many milliseconds to try again, or undefined when the refusal stands.
 *
 * 429 and 503 with `Retry-After` (the server's throttling, start and shutdown) did not process the request, so any method is repeated. Other
 * 5xx answers may have, so only an idempotent one is. A 503 without `Retry-After` is an answer like any other.
 *
 * @param waitedMs what the request has waited already
 * @param random a number in [0, 1), to spread the clients out
 */
export function retryDelayMs(
  policy: RetryPolicy,
  refusal: Refusal,
  progress: { readonly attempt: number; readonly waitedMs: number; readonly idempotent: boolean },
  random: number,
): number | undefined {
  const { code, retryAfterSeconds } = refusal;
  if (progress.attempt >= policy.maxAttempts) return undefined;
  const unprocessed = code === 429 || code === 503;
  if (!unprocessed && !(code >= 500 && progress.idempotent)) return undefined;
  const seconds = retryAfterSeconds ?? (code === 429 ? DEFAULT_WAIT_SECONDS : undefined);
  if (seconds === undefined) return undefined;
  const delay = seconds * 1000 * (1 + random * 0.1);
  return progress.waitedMs + delay > policy.maxWaitMs ? undefined : delay;
}
