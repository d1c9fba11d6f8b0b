/** Corrections of one child that are made without delay. */
const FREE = 5;
/** A child that was not corrected for this long is contested no more, in milliseconds. */
const QUIET_MS = 60_000;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 300_000;
const SWEEP_EVERY = 1_000;

interface Contest {
  corrections: number;
  /** No correction before this. */
  notBefore: number;
  lastAt: number;
}

/**
 * Slows down the correction of children that somebody else changes back again and again: two controllers that both insist on a value
 * would else write as fast as the API server answers. Five corrections are free; from then on the delay doubles from 1 s to 5 min.
 */
export class Contests {
  private readonly contests = new Map<string, Contest>();
  private sinceSweep = 0;

  /** @param now a monotonic clock, in milliseconds */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** How long to wait before a child is corrected that no longer is as it was applied, in milliseconds; 0 to go ahead. */
  delay(child: string): number {
    const contest = this.contests.get(child);
    return contest === undefined ? 0 : Math.max(0, contest.notBefore - this.now());
  }

  /** A child has been corrected. What the server refused is no correction. */
  corrected(child: string): void {
    const now = this.now();
    const contest = this.current(child, now);
    contest.corrections++;
    contest.lastAt = now;
    const over = contest.corrections - FREE;
    if (over >= 0) contest.notBefore = now + Math.min(FIRST_DELAY_MS * 2 ** over, LONGEST_DELAY_MS);
  }

  private current(child: string, now: number): Contest {
    const known = this.contests.get(child);
    if (known !== undefined && !isQuiet(known, now)) return known;
    if (++this.sinceSweep >= SWEEP_EVERY) this.sweep(now);
    const fresh = { corrections: 0, notBefore: 0, lastAt: now };
    this.contests.set(child, fresh);
    return fresh;
  }

  private sweep(now: number): void {
    this.sinceSweep = 0;
    for (const [child, contest] of this.contests) if (isQuiet(contest, now)) this.contests.delete(child);
  }
}

/** The quiet time begins when the delay is over. */
function isQuiet(contest: Contest, now: number): boolean {
  return now - Math.max(contest.lastAt, contest.notBefore) > QUIET_MS;
}
