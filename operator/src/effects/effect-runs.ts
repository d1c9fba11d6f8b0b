import type { RunProgress } from './plan-runner';

/** A run under way, or waiting for its turn. */
export interface RunView {
  readonly effect: string;
  readonly state: 'waiting' | 'running';
  /** The latest report. */
  readonly progress?: RunProgress;
}

/** A run that is asked for. */
export interface RunRequest {
  /** The effect's name. */
  readonly effect: string;
  /** Must not reject. */
  readonly job: (report: (progress: RunProgress) => void) => Promise<void>;
  /** Told of every report, and of the end. */
  readonly onChange: () => void;
}

interface Entry {
  effect: string;
  state: 'waiting' | 'running';
  progress?: RunProgress;
  begin: () => void;
}

/**
 * The runs of effects: at most one an object, at most `limit` in all, in the order in which they were asked for.
 *
 * Guarantees: after `stop` aborts none begins; those that wait are dropped.
 */
export class EffectRuns {
  private readonly entries = new Map<string, Entry>();
  private running = 0;
  private ends: (() => void)[] = [];

  constructor(
    private readonly options: {
      /** How many at once. */
      readonly limit: number;
      readonly stop: AbortSignal;
    },
  ) {
    options.stop.addEventListener('abort', () => this.dropWaiting(), { once: true });
  }

  /** The run of an object, if any. */
  of(uid: string): RunView | undefined {
    return this.entries.get(uid);
  }

  /**
   * Asks for a run. After a stop nothing comes of it.
   *
   * @throws Error when the object has a run already
   */
  start(uid: string, run: RunRequest): void {
    if (this.entries.has(uid)) throw new Error(`an effect of ${uid} is under way already`);
    if (this.options.stop.aborted) return;
    const entry: Entry = { effect: run.effect, state: 'waiting', begin: () => void this.carryOut(uid, entry, run) };
    this.entries.set(uid, entry);
    this.next();
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    return this.running === 0 ? Promise.resolve() : new Promise((resolve) => this.ends.push(resolve));
  }

  /** How many are under way. */
  get size(): number {
    return this.running;
  }

  private next(): void {
    if (this.running >= this.options.limit) return;
    for (const entry of this.entries.values()) {
      if (entry.state === 'waiting') {
        entry.state = 'running';
        this.running += 1;
        entry.begin();
        return;
      }
    }
  }

  private async carryOut(uid: string, entry: Entry, { job, onChange }: RunRequest): Promise<void> {
    try {
      await job((progress) => {
        entry.progress = { ...progress, status: { ...entry.progress?.status, ...progress.status } };
        onChange();
      });
    } finally {
      this.entries.delete(uid);
      this.running -= 1;
      onChange();
      this.next();
      if (this.running === 0) for (const end of this.ends.splice(0)) end();
    }
  }

  private dropWaiting(): void {
    for (const [uid, entry] of this.entries) if (entry.state === 'waiting') this.entries.delete(uid);
  }
}
