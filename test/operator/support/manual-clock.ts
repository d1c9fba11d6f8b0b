import type { Clock } from '../../../operator/process/clock';

interface ManualTimer {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Lets pending promises and `nextTurn` callbacks run, without any time passing. */
export async function settle(turns = 4): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** A clock that stands still until told. The wall clock starts at 2026-01-01T00:00:00Z and runs along with the monotonic one. */
export class ManualClock implements Clock {
  private monotonic = 1000;
  private wall = Date.UTC(2026, 0, 1);
  private order = 0;
  private timers: ManualTimer[] = [];

  monotonicMs = (): number => this.monotonic;
  wallMs = (): number => this.wall;

  setTimer = (run: () => void, ms: number): (() => void) => {
    const timer = { at: this.monotonic + Math.max(0, ms), order: this.order++, run };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((other) => other !== timer);
    };
  };

  nextTurn = (run: () => void): void => {
    setImmediate(run);
  };

  get timerCount(): number {
    return this.timers.length;
  }

  /** Moves time on, firing each timer at its time and letting promises settle in between. */
  async advance(ms: number): Promise<void> {
    const target = this.monotonic + ms;
    await settle();
    for (let timer = this.due(target); timer !== undefined; timer = this.due(target)) {
      this.move(Math.max(0, timer.at - this.monotonic));
      this.fire(timer);
      await settle();
    }
    this.move(target - this.monotonic);
    await settle();
  }

  /** As `advance`, but without letting any promise settle. */
  advanceSync(ms: number): void {
    const target = this.monotonic + ms;
    for (let timer = this.due(target); timer !== undefined; timer = this.due(target)) {
      this.move(Math.max(0, timer.at - this.monotonic));
      this.fire(timer);
    }
    this.move(target - this.monotonic);
  }

  /** The process is stopped for so long: time passes, no timer fires until the next `advance`. */
  pause(ms: number): void {
    this.move(ms);
  }

  /** Steps the wall clock alone, either way. */
  stepWall(ms: number): void {
    this.wall += ms;
  }

  private move(ms: number): void {
    this.monotonic += ms;
    this.wall += ms;
  }

  private fire(timer: ManualTimer): void {
    this.timers = this.timers.filter((other) => other !== timer);
    timer.run();
  }

  private due(target: number): ManualTimer | undefined {
    let first: ManualTimer | undefined;
    for (const timer of this.timers) {
      if (timer.at > target) continue;
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order))
        first = timer;
    }
    return first;
  }
}
