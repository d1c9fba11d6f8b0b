import { constants } from 'node:os';
import { Interrupted } from '../errors';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Turns the signals that end a command, and a reader who has gone, into an abort. */
export class Interruption {
  private readonly controller = new AbortController();

  constructor() {
    for (const name of signals) process.on(name, this.onSignal);
    process.stdout.on('error', this.onStdoutError);
  }

  /** Aborts with an `Interrupted`. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  dispose(): void {
    for (const name of signals) process.off(name, this.onSignal);
    process.stdout.off('error', this.onStdoutError);
  }

  private readonly onSignal = (name: (typeof signals)[number]): void => {
    // The second time is meant: the guards of the parts and the act before exit see to what still runs.
    if (this.controller.signal.aborted) process.exit(128 + constants.signals[name]);
    this.controller.abort(new Interrupted(name));
  };

  private readonly onStdoutError = (): void => {
    if (!this.controller.signal.aborted) this.controller.abort(new Interrupted('EPIPE'));
  };
}
