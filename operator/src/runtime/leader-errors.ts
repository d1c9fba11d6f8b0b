/** A write was about to be sent by a process that does not (or no longer surely) hold the Lease. Nothing was sent. */
export class NotLeaderError extends Error {
  override readonly name = 'NotLeaderError';
}

/** This process held the Lease and lost it. It must stop its work; it never becomes leader again. */
export class LeadershipLostError extends Error {
  override readonly name = 'LeadershipLostError';
}
