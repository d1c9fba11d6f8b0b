import type { AnyKind, Reason } from '../../constructs/kind/kind';
import type { RenderedChild } from '../../constructs/kind/render';
import { describeObject } from '../../constructs/kind/validate';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { groupOf, typeKey } from '../../constructs/kube/resource-type';
import { refusal } from '../apply/ownership';
import type { ChildOutcome } from '../apply/write-child';
import { refOf } from '../client/api-client';
import { ApiError, TransportError } from '../client/errors';
import { NotLeaderError } from '../leader/leader-election';
import type { Verdict } from '../status/conditions';
import type { AwaitedName, Next, ObjectEvent, ReconcileContext } from './context';

/** One child that does not stand as rendered. */
export interface Shortfall {
  readonly verdict: Verdict;
  readonly retry: boolean;
  /** Try again after this long, in milliseconds. */
  readonly afterMs?: number;
  readonly awaited?: AwaitedName;
}

/** After so many milliseconds, what is in a child's way and not in the cache is looked at again. */
const UNSEEN_AGAIN_MS = 10_000;

/** What several shortfalls come to. */
export interface Shortfalls {
  /** The worst that happened; undefined when every child stands as rendered. */
  readonly verdict: Verdict | undefined;
  readonly retry: boolean;
  /** Try again after this long, in milliseconds. */
  readonly afterMs?: number;
  /** Children that cannot be written before something happens to their names. */
  readonly awaited: readonly AwaitedName[];
}

/** Sums up the children that do not stand as rendered. */
export function sumUp(shortfalls: readonly Shortfall[]): Shortfalls {
  const times = shortfalls.flatMap(({ afterMs }) => afterMs ?? []);
  return {
    verdict: worstOf(shortfalls.map(({ verdict }) => verdict)),
    retry: shortfalls.some(({ retry }) => retry),
    afterMs: times.length === 0 ? undefined : Math.min(...times),
    awaited: shortfalls.flatMap(({ awaited }) => (awaited === undefined ? [] : [awaited])),
  };
}

/** Whose child is written: one object's, or of all objects that share it. */
interface Ownership {
  readonly kind: AnyKind;
  readonly owners: readonly KubeObject[];
}

/**
 * What an outcome leaves to be desired; undefined when the child stands.
 *
 * @param ownership Whose child it is to be
 * @param warn told what a person has to know
 */
export function shortfallOf(
  { kind, owners }: Ownership,
  { type, manifest }: RenderedChild,
  outcome: ChildOutcome,
  warn: (reason: Reason) => void,
): Shortfall | undefined {
  const ref = refOf(manifest);
  switch (outcome.result) {
    case 'refused': {
      const message = `${describeObject(outcome.live)}: ${refusal(type, outcome.live, kind, owners)}`;
      const reason = { reason: 'ErrResourceExists', message };
      warn(reason);
      return { verdict: { state: 'stalled', ...reason }, retry: false, awaited: { type, ref }, ...again(outcome) };
    }
    case 'contested':
    case 'deleted': {
      const message = `${type.kind} "${ref.name}": ${contested(outcome)}; have one of the two leave it alone`;
      const reason = { reason: 'ErrContested', message };
      warn(reason);
      return { verdict: { state: 'failing', ...reason }, retry: false, afterMs: outcome.waitMs };
    }
    case 'waiting': {
      const message = `${type.kind} "${ref.name}": ${outcome.message}`;
      const verdict: Verdict = { state: 'progressing', reason: 'Waiting', message };
      return { verdict, retry: false, awaited: { type, ref }, ...again(outcome) };
    }
    default:
      return undefined;
  }
}

/** Of an end that the cache misses, only another look tells. */
function again({ isUnseen }: Extract<ChildOutcome, { result: 'refused' | 'waiting' }>): Pick<Shortfall, 'afterMs'> {
  return isUnseen === true ? { afterMs: UNSEEN_AGAIN_MS } : {};
}

/** Who deletes is not to be found out from the API: nothing is left to look at. The rest of the delay would be another message each time. */
function contested(outcome: Extract<ChildOutcome, { result: 'contested' | 'deleted' }>): string {
  if (outcome.result === 'contested')
    return `${outcome.path} is changed by "${outcome.by}" as often as it is corrected`;
  const seconds = String(Math.round(outcome.delayMs / 1000));
  return `something else deletes it as often as it is created; it is created again ${seconds} s after the last time`;
}

/** What the lack of its type leaves to be desired of a child: nothing can be done for it before somebody installs the type. */
export function typeMissing({ type, manifest }: RenderedChild, warn: (reason: Reason) => void): Shortfall {
  const name = `${type.plural}.${groupOf(type)}`;
  const message = `${type.kind} "${manifest.metadata.name}": the server has no type ${typeKey(type)}; install it (the CRD ${name}), and this object goes on by itself`;
  const reason = { reason: 'ErrTypeMissing', message };
  warn(reason);
  return { verdict: { state: 'failing', ...reason }, retry: false };
}

/**
 * What an error leaves to be desired of the child that it came from.
 *
 * @throws the error itself when it is no fault of the child: the cache was behind, the server is away, or this process does not lead
 */
export function failureOf({ type, manifest }: RenderedChild, error: unknown): Shortfall {
  const failure = classify(error);
  if (failure.kind === 'stale') throw error;
  const message = `${type.kind} "${manifest.metadata.name}": ${failure.message}`;
  const reason = { reason: failure.reason, message };
  if (failure.kind === 'retry') return { verdict: { state: 'failing', ...reason }, retry: true };
  // It may be somebody else's still, refused while it was to be adopted: then its events wake only who waits for its name.
  return { verdict: { state: 'stalled', ...reason }, retry: false, awaited: { type, ref: refOf(manifest) } };
}

const SEVERITY: Readonly<Record<Verdict['state'], number>> = {
  stalled: 4,
  failing: 3,
  progressing: 2,
  paused: 1,
  ready: 0,
};

/** The gravest of several verdicts, with the messages of all of its state. */
export function worstOf(verdicts: readonly Verdict[]): Verdict | undefined {
  const worst = verdicts.reduce<Verdict | undefined>(
    (a, b) => (a === undefined || SEVERITY[b.state] > SEVERITY[a.state] ? b : a),
    undefined,
  );
  if (worst === undefined) return undefined;
  const message = verdicts
    .filter(({ state }) => state === worst.state)
    .map((verdict) => verdict.message)
    .join('; ');
  return { ...worst, message };
}

/** Why an object cannot be reconciled: the reason and the message go into its `Ready` condition. */
export class ReconcileError extends Error {
  override readonly name: string = 'ReconcileError';
  /** True: another attempt fails too, until the spec, an object it refers to, or the annotation `kindred.dev/reconcile-at` changes. */
  readonly isTerminal: boolean;
  /** Reconcile again after so long, in milliseconds, for causes whose end no watch reports. */
  readonly afterMs: number | undefined;

  constructor(
    /** CamelCase, for the condition. */
    readonly reason: string,
    message: string,
    details: { readonly isTerminal?: boolean; readonly afterMs?: number; readonly cause?: unknown } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : {});
    this.isTerminal = details.isTerminal ?? false;
    this.afterMs = details.afterMs;
  }
}

/** What a failure means for the object that was being reconciled. */
interface Failure {
  /**
   * `stale`: the cache was behind, the server is away, or this process does not lead: try again silently, and write nothing about it.
   * `terminal`: only a change helps. `retry`: try again, and say why.
   */
  readonly kind: 'stale' | 'terminal' | 'retry';
  /** CamelCase, for the condition. */
  readonly reason: string;
  readonly message: string;
}

/** Judges what a reconcile threw. */
export function classify(error: unknown): Failure {
  if (error instanceof ReconcileError) {
    return { kind: error.isTerminal ? 'terminal' : 'retry', reason: error.reason, message: error.message };
  }
  if (error instanceof ApiError) return classifyApi(error);
  if (error instanceof TransportError) return { kind: 'stale', reason: 'ErrUnreachable', message: error.message };
  // Who does not lead has tried nothing, and may write nothing about it either.
  if (error instanceof NotLeaderError) return { kind: 'stale', reason: 'NotLeader', message: error.message };
  const message = error instanceof Error ? error.message : String(error);
  return { kind: 'retry', reason: 'ErrReconcile', message };
}

function classifyApi(error: ApiError): Failure {
  const { reason, message } = error;
  // Codes, not reasons: an aggregated server may leave the reason out.
  if (error.code === 409 || error.code === 404) return { kind: 'stale', reason, message };
  if (error.code === 422 || error.code === 400) return { kind: 'terminal', reason: 'ErrInvalidChild', message };
  return { kind: 'retry', reason: error.code === 403 ? 'ErrForbidden' : 'ErrServer', message };
}

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
