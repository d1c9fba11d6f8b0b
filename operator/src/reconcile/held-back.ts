import type { Reason } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { Next, ObjectEvent, ReconcileContext } from './context';

/** A correction that has to wait. */
export interface HeldBack {
  readonly reason: Reason;
  /** Try again after this long, in milliseconds. */
  readonly afterMs: number;
}

/** A correction that may be contested. */
export interface Correction {
  /** What the corrections are counted by. */
  readonly contest: string;
  /** What was being done, for the event. */
  readonly action: ObjectEvent['action'];
  /** What somebody does, and what becomes of the correction `after` so long. */
  readonly says: (after: string) => string;
}

/**
 * Whether a correction has to wait, because somebody else has undone it as often as it was made; an event says so then.
 *
 * @returns undefined when it may go ahead
 */
export function heldBack(
  { contests, record }: ReconcileContext,
  object: KubeObject,
  { contest, action, says }: Correction,
): HeldBack | undefined {
  const afterMs = contests.delay(contest);
  if (afterMs === 0) return undefined;
  // Not the rest of the delay, which would be another message each time.
  const seconds = String(Math.round(contests.wholeDelay(contest) / 1000));
  const message = `${says(`${seconds} s after the last time`)}; have one of the two leave it alone`;
  const reason = { reason: 'ErrContested', message };
  record(object, { type: 'Warning', action, ...reason });
  return { reason, afterMs };
}

/** What comes next, where the status itself is held back: it cannot say so, the log can. */
export function withHeldStatus(next: Next, held: HeldBack | undefined): Next {
  if (held === undefined) return next;
  const { reason, message } = next.failed ?? held.reason;
  const failed = next.failed === undefined ? held.reason : { reason, message: `${message}; ${held.reason.message}` };
  return { ...next, failed, afterMs: Math.min(next.afterMs ?? Infinity, held.afterMs) };
}
