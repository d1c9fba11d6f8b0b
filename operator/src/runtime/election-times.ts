/** The times of an election, in milliseconds. */
export interface ElectionTimes {
  /** How long others wait, after the last sign of life they saw, before they take the Lease. @default 15000 */
  readonly leaseDurationMs: number;
  /** How long after the start of its last successful renewal a leader still leads. @default 10000 */
  readonly renewDeadlineMs: number;
  /** Between two renewals of a leader; a candidate waits up to 2.2 times that. @default 2000 */
  readonly retryPeriodMs: number;
}

/** client-go's jitter: a candidate waits `retryPeriod * (1 + 1.2 * random)`. */
export const candidateJitter = 1.2;

/**
 * Fills in the defaults (client-go's 15, 10 and 2 s) and checks that the times can be safe.
 *
 * @throws RangeError when a time is not positive, or `leaseDuration > renewDeadline > 1.2 * retryPeriod` does not hold (client-go's
 * rules), or the lease is shorter than the Lease API's unit, a second.
 */
export function electionTimes(given: Partial<ElectionTimes>): ElectionTimes {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = given;
  const times = `leaseDuration ${leaseDurationMs} ms, renewDeadline ${renewDeadlineMs} ms, retryPeriod ${retryPeriodMs} ms`;
  // Written so that NaN fails, too.
  if (!(leaseDurationMs >= 1000 && retryPeriodMs > 0)) {
    throw new RangeError(`leader election: the lease must last a second at least, and times be positive (${times})`);
  }
  if (!(leaseDurationMs > renewDeadlineMs)) {
    throw new RangeError(`leader election: leaseDuration must exceed renewDeadline, or two could lead (${times})`);
  }
  if (!(renewDeadlineMs > candidateJitter * retryPeriodMs)) {
    throw new RangeError(
      `leader election: renewDeadline must exceed 1.2 * retryPeriod, or renewals come late (${times})`,
    );
  }
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}
