/** Options of `withTimeout`. */
interface TimeoutOptions<L> {
  readonly milliseconds: number;
  /** Called when the time is over: its result or its error becomes that of `withTimeout`. */
  readonly onTimeout: () => L;
  /** Whether the timer keeps the process alive. @default true */
  readonly ref?: boolean;
}

/**
 * The result of a promise within a time limit. The promise is not cancelled: its later result is ignored.
 *
 * @throws what the promise rejects with; what `onTimeout` throws
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
 * The result of a promise, unless a signal aborts first. The promise is not cancelled.
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
 * Calls `act` with a signal that aborts as soon as one of several does, with that one's reason; afterwards no
 * listener is left.
 *
 * `AbortSignal.any` would be enough for signals of the same lifetime. In Node.js 20, a signal that lives
 * longer keeps some 80 bytes of each call for as long as it lives. Source:
 * https://github.com/nodejs/node/issues/54614
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
