import { LocalControlPlaneError } from '../errors';
import { GuardedProcess, type GuardedProcessOptions, type PartExit } from './guarded-process';

/** Keeps count of a run's processes, and tells of those that end unasked. */
export class RunningParts {
  readonly #processes = new Set<GuardedProcess>();
  readonly #expected = new Set<GuardedProcess>();
  readonly #listeners = new Set<(exit: PartExit) => void>();
  #closed = false;

  /**
   * Starts a program and counts it in.
   *
   * @throws LocalControlPlaneError once the run is being ended
   */
  start(options: GuardedProcessOptions): GuardedProcess {
    if (this.#closed) {
      throw new LocalControlPlaneError(`cannot start ${options.part}: the control plane has been stopped`);
    }
    const process = new GuardedProcess(options);
    this.#processes.add(process);
    this.#watch(process);
    return process;
  }

  /** Ends one process on purpose, and waits until it is gone. */
  async kill(process: GuardedProcess): Promise<void> {
    if (process.running) this.#expected.add(process);
    await process.kill();
  }

  /** Calls back when a process ends that was not ended on purpose; returns what takes the listener back. */
  onExit(listener: (exit: PartExit) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Ends everything at once, without waiting: for the last moment of this process. */
  signalAll(): void {
    this.#closed = true;
    for (const process of this.#processes) {
      this.#expected.add(process);
      process.signal('SIGKILL');
    }
  }

  /** Ends everything and waits until it is gone. Nothing is flushed, since the data goes too. */
  async killAll(): Promise<void> {
    const all = [...this.#processes];
    this.signalAll();
    // One that could not even be started is as gone as the others.
    await Promise.allSettled(all.map((process) => process.exited));
  }

  #watch(process: GuardedProcess): void {
    void process.exited.then(
      (exit) => {
        this.#processes.delete(process);
        if (this.#expected.delete(process)) return;
        for (const listener of this.#listeners) listener(exit);
      },
      // Not started at all: whoever waits for it to get ready throws that error.
      () => this.#processes.delete(process),
    );
  }
}
