import { setTimeout as delay } from 'node:timers/promises';

const lookMs = 250;
/** The objects that a user edits are open too now and then: more than a handful must wait. */
const handful = 5;

/** Tells whether much of an operator's work still waits, looking now and then. */
export class Backlog {
  private isOpen = true;
  private readonly looking: Promise<void>;

  /** @param work how many keys wait or are worked on, and how many reconciles are done */
  constructor(
    private readonly work: () => Promise<{ readonly open: number; readonly done: number }>,
    private readonly pauseMs = lookMs,
  ) {
    this.looking = this.look();
    this.looking.catch(() => (this.isOpen = false)); // whoever ends it hears of it
  }

  /** Until it is seen to be done; nothing done at all means that it has not begun. */
  get open(): boolean {
    return this.isOpen;
  }

  /**
   * Looks no more.
   *
   * @throws what a look has thrown
   */
  async end(): Promise<void> {
    this.isOpen = false;
    await this.looking;
  }

  private async look(): Promise<void> {
    while (this.isOpen) {
      const { open, done } = await this.work();
      if (open <= handful && done > 0) this.isOpen = false;
      else await delay(this.pauseMs);
    }
  }
}
