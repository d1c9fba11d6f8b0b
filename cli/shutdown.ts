import { constants } from 'node:os';
import { messageOf } from '../local/assets/errors';
import { InterruptedError } from './errors';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Turns the signals that end a command, and a closed stdout, into an abort. */
export class SignalHandler {
  private readonly controller = new AbortController();

  constructor() {
    for (const name of signals) process.on(name, this.onSignal);
    process.stdout.on('error', this.onStdoutError);
  }

  /** Aborts with an {@link InterruptedError}. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  dispose(): void {
    for (const name of signals) process.off(name, this.onSignal);
    process.stdout.off('error', this.onStdoutError);
  }

  private readonly onSignal = (name: (typeof signals)[number]): void => {
    // The second signal ends it at once: the guards of the processes and `exit` handlers end what still runs.
    if (this.controller.signal.aborted) process.exit(128 + constants.signals[name]);
    this.controller.abort(new InterruptedError(name));
  };

  private readonly onStdoutError = (): void => {
    if (!this.controller.signal.aborted) this.controller.abort(new InterruptedError('EPIPE'));
  };
}

/** What a promise resolves to. @throws the abort reason when the signal aborts first */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // Nobody else may be waiting for it.
  promise.catch(() => undefined);
  signal.throwIfAborted();
  let end: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    end = () => reject(signal.reason as Error);
    signal.addEventListener('abort', end, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}

/** Cleanup steps, which run in reverse order. */
export class CleanupStack {
  private readonly steps: { readonly what: string; readonly undo: () => Promise<void> }[] = [];

  /** @param what - names the step in errors: `stop the operator` */
  add(what: string, undo: () => Promise<void>): void {
    this.steps.push({ what, undo });
  }

  /**
   * Runs all steps, even if some fail.
   *
   * @throws AggregateError with the errors of the steps that failed
   */
  async run(): Promise<void> {
    const errors: unknown[] = [];
    for (const { what, undo } of this.steps.splice(0).reverse()) {
      try {
        await undo();
      } catch (cause) {
        errors.push(new Error(`could not ${what}: ${messageOf(cause)}`, { cause }));
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, errors.map(messageOf).join('; '));
  }
}
