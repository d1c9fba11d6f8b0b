import { PlanError } from '../effects/plan-runner';
import { ApiError, TransportError } from '../client/errors';
import { NotLeaderError } from '../runtime/leader-errors';

/** Hopeless until the spec, an object it refers to, or the `kindred.dev/reconcile-at` annotation changes. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
  constructor(
    /** CamelCase, for the condition. */
    readonly reason: string,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
  }
}

/** What a failure means for the object that was being reconciled. */
export interface Failure {
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
  if (error instanceof TerminalError) return { kind: 'terminal', reason: error.reason, message: error.message };
  if (error instanceof PlanError) {
    const kind = error.details.hopeless === true ? 'terminal' : 'retry';
    return { kind, reason: error.reason, message: error.message };
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
