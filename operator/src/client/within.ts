/** How long something may take, and what is made of its taking longer. */
export interface Bound<L> {
  readonly milliseconds: number;
  /** Called when the time is over: what it returns counts as the outcome, what it throws as the failure. */
  readonly late: () => L;
  /** Whether the process stays for it when all else has ended. @default true */
  readonly ref?: boolean;
}

/**
 * What a promise comes to within a time. What cannot be cut is left to itself: nobody hears of what it comes to later.
 *
 * @throws what the promise rejects with; what `late` throws
 */
export async function within<T, L>(promise: Promise<T>, { milliseconds, late, ref = true }: Bound<L>): Promise<T | L> {
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
