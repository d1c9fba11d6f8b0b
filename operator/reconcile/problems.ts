/** What can be wrong with an object or its children, and what each error means for the next reconcile. */

import { errorMessage, RenderError } from '../../constructs/kube/errors';
import type { AnyKind, Reason } from '../../constructs/kind/kind';
import type { RenderedChild } from '../../constructs/kind/render';
import { describeObject } from '../../constructs/kind/validate';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { resourceName, typeKey } from '../../constructs/kube/resource-type';
import type { Contest } from '../apply/drift-backoff';
import { refusalMessage } from '../apply/ownership';
import type { ChildOutcome } from '../apply/write-child';
import { refOf } from '../client/api-client';
import { ApiError, TransportError } from '../client/errors';
import { NotLeaderError } from '../leader/leader-election';
import type { Readiness } from '../status/conditions';
import type { AwaitedName, ReconcileResult, ObjectEvent, ReconcileContext } from './context';
import { immutableFieldAdvice } from './immutable-fields';

/** Why one child is not as rendered. */
export interface ChildProblem {
  readonly readiness: Readiness;
  readonly retry: boolean;
  /** Try again after this long, in milliseconds. */
  readonly requeueAfterMs?: number;
  readonly awaited?: AwaitedName;
  /** The child is as rendered; but another writer changes it again and again. */
  readonly isCorrected?: true;
}

/** The problems of several children, combined. */
export interface ChildProblems {
  /** The most severe one; undefined when every child is as rendered. */
  readonly readiness: Readiness | undefined;
  readonly retry: boolean;
  /** Try again after this long, in milliseconds. */
  readonly requeueAfterMs?: number;
  /** Children that cannot be written before something happens to their names. */
  readonly awaited: readonly AwaitedName[];
}

/** Combines the problems of several children. */
export function combineProblems(problems: readonly ChildProblem[]): ChildProblems {
  return {
    readiness: mostSevere(problems.map(({ readiness }) => readiness)),
    retry: problems.some(({ retry }) => retry),
    requeueAfterMs: earliest(...problems.map(({ requeueAfterMs }) => requeueAfterMs)),
    awaited: problems.flatMap(({ awaited }) => (awaited === undefined ? [] : [awaited])),
  };
}

/** The earliest of several times in milliseconds, if any. */
export function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((ms) => ms !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

const SEVERITY: Readonly<Record<Readiness['state'], number>> = {
  stalled: 4,
  failing: 3,
  progressing: 2,
  paused: 1,
  ready: 0,
};

/** The most severe of several readinesses, with the messages of all that have its state. */
export function mostSevere(all: readonly Readiness[]): Readiness | undefined {
  const worst = all.reduce<Readiness | undefined>(
    (a, b) => (a === undefined || SEVERITY[b.state] > SEVERITY[a.state] ? b : a),
    undefined,
  );
  if (worst === undefined) return undefined;
  const message = all
    .filter(({ state }) => state === worst.state)
    .map((readiness) => readiness.message)
    .join('; ');
  return { ...worst, message };
}

/** The owners of a child: one object, or all objects that share it. */
interface ChildOwners {
  readonly kind: AnyKind;
  readonly owners: readonly KubeObject[];
}

/**
 * The problem that the outcome of a write reports; undefined when the child is as rendered.
 *
 * @param warn called with what a person has to know
 */
export function problemOfOutcome(
  { kind, owners }: ChildOwners,
  child: RenderedChild,
  outcome: ChildOutcome,
  warn: (reason: Reason) => void,
): ChildProblem | undefined {
  const { type, manifest } = child;
  const ref = refOf(manifest);
  switch (outcome.result) {
    case 'refused': {
      const message = `${describeObject(outcome.live)}: ${refusalMessage(type, outcome.live, kind, owners)}`;
      const reason = { reason: 'ErrResourceExists', message };
      warn(reason);
      return {
        readiness: { state: 'stalled', ...reason },
        retry: false,
        awaited: { type, ref },
        ...retryIfUncached(outcome),
      };
    }
    case 'backingOff':
    case 'deleted': {
      return contestProblem(child, describeContest(outcome), outcome.waitMs, warn);
    }
    case 'unstable': {
      const seconds = String(Math.round(outcome.delayMs / 1000));
      const message = `${type.kind} "${ref.name}": ${outcome.path} is rendered differently again and again, though the object has not changed; it is written again ${seconds} s after the last time. Render from the object alone`;
      const reason = { reason: 'ErrImpure', message };
      warn(reason);
      return { readiness: { state: 'failing', ...reason }, retry: false, requeueAfterMs: outcome.waitMs };
    }
    case 'applied':
    case 'unchanged': {
      if (outcome.contest === undefined) return undefined;
      // The event is the correction's; the problem stays until nobody has changed the field for a while.
      const tell = outcome.result === 'applied' ? warn : undefined;
      const problem = contestProblem(child, describeFieldContest(outcome.contest), outcome.contest.waitMs, tell);
      return { ...problem, isCorrected: true };
    }
    case 'waiting': {
      const message = `${type.kind} "${ref.name}": ${outcome.message}`;
      const readiness: Readiness = { state: 'progressing', reason: 'Waiting', message };
      return { readiness, retry: false, awaited: { type, ref }, ...retryIfUncached(outcome) };
    }
    default:
      return undefined;
  }
}

/** How soon the object in a child's way is read again if the cache does not have it, in milliseconds. */
const UNCACHED_RETRY_MS = 10_000;

/** Only another read can show the deletion of an object that the cache does not have. */
function retryIfUncached({
  isUncached,
}: Extract<ChildOutcome, { result: 'refused' | 'waiting' }>): Pick<ChildProblem, 'requeueAfterMs'> {
  return isUncached === true ? { requeueAfterMs: UNCACHED_RETRY_MS } : {};
}

/**
 * Describes the drift. The API does not show who deletes a child, since nothing is left to read. The message
 * has the whole delay: the remaining one would change it each time.
 */
function describeContest(outcome: Extract<ChildOutcome, { result: 'backingOff' | 'deleted' }>): string {
  if (outcome.result === 'backingOff') return describeFieldContest(outcome);
  const seconds = String(Math.round(outcome.delayMs / 1000));
  return `something else deletes it as often as it is created; it is created again ${seconds} s after the last time`;
}

function describeFieldContest({ path, by }: Contest): string {
  return `${path} is changed by "${by}" as often as it is corrected`;
}

function contestProblem(
  { type, manifest }: RenderedChild,
  contest: string,
  requeueAfterMs: number,
  warn?: (reason: Reason) => void,
): ChildProblem {
  const message = `${type.kind} "${manifest.metadata.name}": ${contest}; have one of the two leave it alone`;
  const reason = { reason: 'ErrContested', message };
  warn?.(reason);
  return { readiness: { state: 'failing', ...reason }, retry: false, requeueAfterMs };
}

/**
 * The problem of a child whose type the server lacks: nothing can be done for it before somebody installs the
 * type.
 */
export function problemOfMissingType({ type, manifest }: RenderedChild, warn: (reason: Reason) => void): ChildProblem {
  const message = `${type.kind} "${manifest.metadata.name}": the server has no type ${typeKey(type)}; install it (the CRD ${resourceName(type)}), and this object goes on by itself`;
  const reason = { reason: 'ErrTypeMissing', message };
  warn(reason);
  return { readiness: { state: 'failing', ...reason }, retry: false };
}

/**
 * The problem of the child that an error came from. If a field cannot be changed on the existing child, the
 * message begins with what to do: an event has room for little more, and the server's words may be long.
 *
 * @param exists whether the child existed, so that the error is the response to an update
 * @throws the error itself when it is no fault of the child: the cache was behind, the server is unreachable,
 * this process does not lead, or a function of the kind threw
 */
export function problemOfError({ type, manifest }: RenderedChild, error: unknown, exists: boolean): ChildProblem {
  const failure = classify(error);
  if (failure.kind === 'stale' || error instanceof RenderError) throw error;
  const ref = refOf(manifest);
  const canAdvise = exists && failure.kind === 'terminal' && error instanceof ApiError;
  const advice = canAdvise ? immutableFieldAdvice(type, ref, error) : undefined;
  const why = advice === undefined ? failure.message : `${advice} The API server's words: ${failure.message}`;
  const reason = { reason: failure.reason, message: `${type.kind} "${ref.name}": ${why}` };
  if (failure.kind === 'retry') return { readiness: { state: 'failing', ...reason }, retry: true };
  // The object may still be foreign, if its adoption was rejected: its events then enqueue only keys that
  // wait for its name.
  return { readiness: { state: 'stalled', ...reason }, retry: false, awaited: { type, ref } };
}

/** Why an object cannot be reconciled: the reason and the message go into its `Ready` condition. */
export class ReconcileError extends Error {
  override readonly name: string = 'ReconcileError';
  /** True: another attempt fails too, until the spec, an object it refers to, or the annotation `kindred.dev/reconcile-at` changes. */
  readonly isTerminal: boolean;
  /** Reconcile again after this long, in milliseconds, for causes whose end no watch reports. */
  readonly requeueAfterMs: number | undefined;

  constructor(
    /** CamelCase, for the condition. */
    readonly reason: string,
    message: string,
    details: { readonly isTerminal?: boolean; readonly requeueAfterMs?: number; readonly cause?: unknown } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : {});
    this.isTerminal = details.isTerminal ?? false;
    this.requeueAfterMs = details.requeueAfterMs;
  }
}

/** What a failure means for the object that was being reconciled. */
interface ClassifiedError {
  /**
   * `stale`: the cache was behind, the server is unreachable, or this process does not lead: try again
   * silently, and write nothing about it.
   * `terminal`: only a change helps. `retry`: try again, and say why.
   */
  readonly kind: 'stale' | 'terminal' | 'retry';
  /** CamelCase, for the condition. */
  readonly reason: string;
  readonly message: string;
}

/** Classifies what a reconcile threw. */
export function classify(error: unknown): ClassifiedError {
  if (error instanceof ReconcileError) {
    return { kind: error.isTerminal ? 'terminal' : 'retry', reason: error.reason, message: error.message };
  }
  if (error instanceof ApiError) return classifyApi(error);
  if (error instanceof TransportError) return { kind: 'stale', reason: 'ErrUnreachable', message: error.message };
  // A process that does not lead has tried nothing, and may not write about it either.
  if (error instanceof NotLeaderError) return { kind: 'stale', reason: 'NotLeader', message: error.message };
  const message = errorMessage(error);
  return { kind: 'retry', reason: 'ErrReconcile', message };
}

function classifyApi(error: ApiError): ClassifiedError {
  const { reason, message } = error;
  // Codes, not reasons: an aggregated server may leave the reason out.
  if (error.code === 409 || error.code === 404) return { kind: 'stale', reason, message };
  if (error.code === 422 || error.code === 400) return { kind: 'terminal', reason: 'ErrInvalidChild', message };
  return { kind: 'retry', reason: error.code === 403 ? 'ErrForbidden' : 'ErrServer', message };
}

/** A correction that has to wait. */
export interface BackedOff {
  readonly reason: Reason;
  /** Try again after this long, in milliseconds. */
  readonly requeueAfterMs: number;
}

/** A correction that somebody else may revert. */
export interface DriftCorrection {
  /** What the corrections are counted by. */
  readonly backoffKey: string;
  /** What was being done, for the event. */
  readonly action: ObjectEvent['action'];
  /** Describes what somebody else does, and when (`after`) the correction is made again. */
  readonly describe: (after: string) => string;
}

/**
 * Whether a correction has to wait, because somebody else has reverted it as often as it was made; records an
 * event then.
 *
 * @returns undefined when it may go ahead
 */
export function checkBackoff(
  { driftBackoff, record }: ReconcileContext,
  object: KubeObject,
  { backoffKey, action, describe: says }: DriftCorrection,
): BackedOff | undefined {
  const requeueAfterMs = driftBackoff.remainingDelayMs(backoffKey);
  if (requeueAfterMs === 0) return undefined;
  // Not the remaining delay, which would change the message each time.
  const seconds = String(Math.round(driftBackoff.totalDelayMs(backoffKey) / 1000));
  const message = `${says(`${seconds} s after the last time`)}; have one of the two leave it alone`;
  const reason = { reason: 'ErrContested', message };
  record(object, { type: 'Warning', action, ...reason });
  return { reason, requeueAfterMs };
}

/**
 * The result of a reconcile whose status write is delayed: the log reports the delay, since the status
 * cannot.
 */
export function withStatusBackoff(next: ReconcileResult, held: BackedOff | undefined): ReconcileResult {
  if (held === undefined) return next;
  const { reason, message } = next.failed ?? held.reason;
  const failed = next.failed === undefined ? held.reason : { reason, message: `${message}; ${held.reason.message}` };
  return { ...next, failed, requeueAfterMs: Math.min(next.requeueAfterMs ?? Infinity, held.requeueAfterMs) };
}
