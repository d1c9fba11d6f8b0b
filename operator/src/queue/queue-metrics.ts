/**
 * How urgent a key is. `user`: somebody changed something. `resync`: the initial list, a periodic resync, an audit.
 * A ready `user` key is always taken before a ready `resync` key.
 */
export type Priority = 'user' | 'resync';

/** What runs right now, in seconds. */
export interface UnfinishedWork {
  /** The sum over all running keys. */
  readonly totalSeconds: number;
  /** The longest-running key's. */
  readonly longestSeconds: number;
}

/**
 * What a queue tells its metrics. The calls match, one for one, what controller-runtime's priority queue reports: `added` only
 * when a key becomes ready (a delayed key does not count into the depth), `retried` at every delayed add.
 */
export interface QueueMetrics {
  added(priority: Priority): void;
  /** A ready key's priority was raised. */
  moved(from: Priority, to: Priority): void;
  /** A ready key was taken after waiting this many seconds. */
  taken(priority: Priority, waitedSeconds: number): void;
  /** A run ended after this many seconds. */
  finished(workedSeconds: number): void;
  retried(): void;
  /** Called once by the queue; `read` is evaluated at every scrape. */
  observeUnfinished(read: () => UnfinishedWork): void;
}
