/** How long something may take, and what is made of its taking longer. */
interface TimeoutOptions<L> {
  readonly milliseconds: number;
  /** Called when the time is over: what it returns counts as the outcome, what it throws as the failure. */
  readonly onTimeout: () => L;
  /** Whether the process stays for it when all else has ended. @default true */
  readonly ref?: boolean;
}

/**
 * What a promise comes to within a time. What cannot be cut is left to itself: nobody hears of what it comes to later.
 *
 * @throws what the promise rejects with; what `late` throws
 */
export async function withTimeout<T, L>(
  promise: Promise<T>,
  { milliseconds, onTimeout: late, ref = true }: TimeoutOptions<L>,
): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, milliseconds));
    if (!ref) timer.unref();
  }).then(late);
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * What a promise comes to, for as long as a signal lets it: what cannot be cut is left to itself.
 *
 * @throws the signal's reason when it is aborted first; what the promise rejects with
 */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}

/**
 * Does something under a signal that aborts as soon as one of several does, with that one's reason; afterwards nothing is left of it.
 *
 * `AbortSignal.any` would do for signals that go together. Of each call, a signal that lives longer keeps some 80 bytes in Node.js 20, for
 * as long as it lives. Source: https://github.com/nodejs/node/issues/54614
 *
 * @throws what `act` rejects with
 */
export async function withAnySignal<T>(
  signals: readonly AbortSignal[],
  act: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const either = new AbortController();
  const onAbort = (): void => either.abort(signals.find(({ aborted }) => aborted)?.reason);
  for (const signal of signals) {
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
  }
  try {
    return await act(either.signal);
  } finally {
    for (const signal of signals) signal.removeEventListener('abort', onAbort);
  }
}
