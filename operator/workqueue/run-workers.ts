import type { Priority, WorkQueue } from './work-queue';

/** Options of `runWorkers`. */
export interface RunWorkersOptions<K extends string> {
  /** How many keys run at once; at most half of them, rounded up, have priority `resync`. @default 32 */
  readonly concurrency?: number;
  /**
   * Works on one key. It decides what comes next: `forget`, `addAfter` or `addRateLimited` on the queue, and
   * records its failures. If it rejects nevertheless, the key is added rate-limited and `onError` is called.
   */
  readonly process: (key: K, priority: Priority) => Promise<void>;
  /** Called with what `process` rejected with. Must not throw. */
  readonly onError: (key: K, error: unknown) => void;
  /** Aborting it starts the orderly shutdown. */
  readonly signal: AbortSignal;
  /** How long the shutdown waits for the keys in flight, in milliseconds. @default 20000 */
  readonly drainMs?: number;
}

/** How the workers ended. */
export interface WorkersEnd<K extends string> {
  /** Keys still running when `drainMs` had passed; empty after a clean end. */
  readonly abandoned: readonly K[];
}

/**
 * Runs a queue's keys until `signal` aborts; then closes the queue, takes no more keys, and waits for those
 * in flight.
 *
 * Guarantees: at most `concurrency` keys run at once, and at most half of them are `resync` keys: a user's
 * change finds a free worker, and a server that is not fully busy. At most one key is started in each turn of
 * the event loop, so that thousands of reconciles without I/O ("nothing changed") delay neither the leader's
 * renewals nor the health checks.
 *
 * Caveats: what is abandoned at the deadline goes on running; only the end of the process stops it.
 *
 * @returns when everything ended or the drain deadline passed; it never rejects.
 * @throws RangeError when `concurrency` is not a whole number of at least one; Error when the queue has
 * workers already.
 */
export function runWorkers<K extends string>(
  queue: WorkQueue<K>,
  options: RunWorkersOptions<K>,
): Promise<WorkersEnd<K>> {
  return new Workers(queue, options).ended;
}

class Workers<K extends string> {
  readonly ended: Promise<WorkersEnd<K>>;
  private resolveEnded!: (end: WorkersEnd<K>) => void;
  private readonly concurrency: number;
  private readonly removeListener: () => void;
  private readonly resyncShare: number;
  private readonly active: Record<Priority, number> = { user: 0, resync: 0 };
  private scheduled = false;
  private stopping = false;
  private cancelDrain: (() => void) | undefined;

  constructor(
    private readonly queue: WorkQueue<K>,
    private readonly options: RunWorkersOptions<K>,
  ) {
    this.concurrency = options.concurrency ?? 32;
    if (!Number.isInteger(this.concurrency) || this.concurrency < 1) {
      throw new RangeError(`runWorkers: concurrency is ${this.concurrency}; it must be a whole number of at least 1`);
    }
    this.resyncShare = Math.ceil(this.concurrency / 2);
    this.ended = new Promise((resolve) => (this.resolveEnded = resolve));
    this.removeListener = queue.onReady(() => this.schedule());
    if (options.signal.aborted) this.stop();
    else options.signal.addEventListener('abort', this.stop, { once: true });
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled || this.stopping) return;
    this.scheduled = true;
    this.queue.clock.nextTurn(() => this.step());
  }

  private step(): void {
    this.scheduled = false;
    if (this.stopping || this.running >= this.concurrency) return;
    const taken = this.queue.take(this.active.resync < this.resyncShare ? 'resync' : 'user');
    if (taken === undefined) return;
    this.active[taken.priority]++;
    void this.run(taken.key, taken.priority);
    this.schedule();
  }

  private async run(key: K, priority: Priority): Promise<void> {
    try {
      await this.options.process(key, priority);
    } catch (error) {
      this.queue.addRateLimited(key, priority);
      this.options.onError(key, error);
    } finally {
      this.queue.done(key);
      this.active[priority]--;
      if (this.stopping) this.endIfIdle();
      else this.schedule();
    }
  }

  private readonly stop = (): void => {
    this.stopping = true;
    this.removeListener();
    this.queue.close();
    this.cancelDrain = this.queue.clock.setTimer(() => this.end(), this.options.drainMs ?? 20_000);
    this.endIfIdle();
  };

  private endIfIdle(): void {
    if (this.running === 0) this.end();
  }

  private get running(): number {
    return this.active.user + this.active.resync;
  }

  private end(): void {
    this.cancelDrain?.();
    this.resolveEnded({ abandoned: this.queue.running });
  }
}
