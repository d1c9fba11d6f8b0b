/** Corrections of one child that are made without delay. */
const FREE = 5;
/** A child that was not corrected for this long is contested no more, in milliseconds. */
const QUIET_MS = 60_000;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 300_000;
const SWEEP_EVERY = 1_000;
/** Of so many children, those written last, it is known what was applied to them. */
const MOST_APPLICATIONS = 10_000;

interface Contest {
  corrections: number;
  /** No correction before this. */
  notBefore: number;
  lastAt: number;
}

interface Application {
  readonly hash: string;
  readonly at: number;
}

/**
 * Slows down the correction of children that somebody else changes back again and again: two controllers that both insist on a value
 * would else write as fast as the API server answers. Five corrections are free; from then on the delay doubles from 1 s to 5 min.
 */
export class Contests {
  private readonly contests = new Map<string, Contest>();
  /** By the child's UID, the latest last. */
  private readonly applications = new Map<string, Application>();
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

  /** A child has been applied. Its hash is remembered, because another writer may take it out of the child. */
  applied(uid: string, hash: string): void {
    const at = this.now();
    this.countForSweep(at);
    this.applications.delete(uid);
    this.applications.set(uid, { hash, at });
    const [oldest] = this.applications.keys();
    if (this.applications.size > MOST_APPLICATIONS && oldest !== undefined) this.applications.delete(oldest);
  }

  /** The hash of what was last applied to a child; undefined when that was never, or is too long ago for a contest. */
  lastApplied(uid: string): string | undefined {
    const application = this.applications.get(uid);
    return application === undefined || isPast(application, this.now()) ? undefined : application.hash;
  }

  private current(child: string, now: number): Contest {
    const known = this.contests.get(child);
    if (known !== undefined && !isQuiet(known, now)) return known;
    this.countForSweep(now);
    const fresh = { corrections: 0, notBefore: 0, lastAt: now };
    this.contests.set(child, fresh);
    return fresh;
  }

  /** Every so many entries, those whose time is over are dropped. */
  private countForSweep(now: number): void {
    if (++this.sinceSweep < SWEEP_EVERY) return;
    this.sinceSweep = 0;
    for (const [child, contest] of this.contests) if (isQuiet(contest, now)) this.contests.delete(child);
    for (const [uid, application] of this.applications) if (isPast(application, now)) this.applications.delete(uid);
  }
}

/** The quiet time begins when the delay is over. */
function isQuiet(contest: Contest, now: number): boolean {
  return now - Math.max(contest.lastAt, contest.notBefore) > QUIET_MS;
}

/** Even the longest delay is over, and the quiet time with it. */
function isPast({ at }: Application, now: number): boolean {
  return now - at > LONGEST_DELAY_MS + QUIET_MS;
}
