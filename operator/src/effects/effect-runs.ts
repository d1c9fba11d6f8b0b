import type { RunProgress } from './plan-runner';

/** A run under way, or waiting for its turn. */
export interface RunView {
  readonly effect: string;
  readonly state: 'waiting' | 'running';
  /** For which `metadata.generation` of the object it was asked for. */
  readonly generation: number | undefined;
  /** The latest report. */
  readonly progress?: RunProgress;
}

/** A run that is asked for. */
export interface RunRequest {
  /** The effect's name. */
  readonly effect: string;
  /** The object's `metadata.generation`. @default unknown */
  readonly generation?: number | undefined;
  /** Called when its turn comes, which may be long after. Must not reject. */
  readonly job: (report: (progress: RunProgress) => void) => Promise<void>;
  /** Told of every report, and of the end. */
  readonly onChange: () => void;
  /** It only looks, and is over soon: probes wait for each other, but not for what takes hours, nor that for them. @default false */
  readonly isProbe?: boolean;
}

interface Entry {
  effect: string;
  isProbe: boolean;
  generation: number | undefined;
  state: 'waiting' | 'running';
  progress?: RunProgress;
  begin: () => void;
}

/**
 * The runs of effects: at most one an object, at most `limit` in all and as many probes, in the order in which they were asked for.
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
    const { effect, isProbe = false, generation } = run;
    const begin = (): void => void this.carryOut(uid, entry, run);
    const entry: Entry = { effect, isProbe, generation, state: 'waiting', begin };
    this.entries.set(uid, entry);
    this.next(isProbe);
  }

  /** Drops the run of an object if it waits for its turn. One that has begun goes on. */
  withdraw(uid: string): void {
    if (this.entries.get(uid)?.state === 'waiting') this.entries.delete(uid);
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    return this.running === 0 ? Promise.resolve() : new Promise((resolve) => this.ends.push(resolve));
  }

  /** How many are under way. */
  get size(): number {
    return this.running;
  }

  private next(isProbe: boolean): void {
    const alike = [...this.entries.values()].filter((entry) => entry.isProbe === isProbe);
    if (alike.filter(({ state }) => state === 'running').length >= this.options.limit) return;
    const entry = alike.find(({ state }) => state === 'waiting');
    if (entry === undefined) return;
    entry.state = 'running';
    this.running += 1;
    entry.begin();
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
      this.next(entry.isProbe);
      if (this.running === 0) for (const end of this.ends.splice(0)) end();
    }
  }

  private dropWaiting(): void {
    for (const [uid, entry] of this.entries) if (entry.state === 'waiting') this.entries.delete(uid);
  }
}
