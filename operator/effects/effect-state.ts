import { createHash } from 'node:crypto';
import type { EffectRun } from '../../constructs/kind/effects';
import { RECONCILE_AT_ANNOTATION } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { StatusFields } from './plan-runner';

/** The effect state of one object. */
export interface EffectState {
  /** By effect. */
  readonly records: Readonly<Record<string, EffectRecord>>;
  /** Secret values, by name. */
  readonly values: Readonly<Record<string, string>>;
}

/** The record of an effect, kept between runs and across restarts. Contains no secret. */
export interface EffectRecord {
  /** Hash of the input of the last run; empty when another effect has taken its place since. */
  readonly input: string;
  /**
   * What the attempts are counted for: another input, generation, retry annotation or read Secret starts the
   * count again.
   */
  readonly countedFor: string;
  /** Runs that were started, except those that were interrupted in an orderly way. */
  readonly attempts: number;
  /** `running` in the stored record of a process that has ended: it was killed. */
  readonly state: 'running' | 'succeeded' | 'failed' | 'interrupted';
  /** When it reached this state, in milliseconds since the Unix epoch. */
  readonly atMs: number;
  /** Why it failed. */
  readonly reason?: string;
  readonly message?: string;
  /** Another attempt would end the same. The name is stored. */
  readonly hopeless?: boolean;
  /**
   * Fields of the object's own status that runs for this input reported, of each the last value: they survive a
   * process that is killed before it writes the status, and a status that is lost.
   */
  readonly status?: StatusFields;
  /** An earlier run for this input has succeeded. */
  readonly succeededBefore?: true;
  /** A run for another input has succeeded. */
  readonly succeededForOther?: true;
}

/** Whether a run has succeeded for the input of the last run. */
export function hasSucceeded({ state, succeededBefore }: EffectRecord): boolean {
  return state === 'succeeded' || succeededBefore === true;
}

/** Whether a run has ever succeeded. */
export function hasEverSucceeded(record: EffectRecord): boolean {
  return hasSucceeded(record) || record.succeededForOther === true;
}

/** The record of a run that begins or ends. @param before - the effect's record so far */
export function nextRecord(
  before: EffectRecord | undefined,
  now: Pick<EffectRecord, 'input' | 'countedFor' | 'attempts' | 'state' | 'atMs'> & Partial<EffectRecord>,
): EffectRecord {
  const same = before?.input === now.input ? before : undefined;
  const status = { ...same?.status, ...now.status };
  const isSuccess = now.state === 'succeeded';
  return {
    ...now,
    ...(!isSuccess && same !== undefined && hasSucceeded(same) && { succeededBefore: true }),
    ...(!isSuccess && hasSucceededForOther(before, now.input) && { succeededForOther: true }),
    ...(Object.keys(status).length > 0 && { status }),
  };
}

function hasSucceededForOther(before: EffectRecord | undefined, input: string): boolean {
  if (before === undefined) return false;
  return before.input === input ? before.succeededForOther === true : hasEverSucceeded(before);
}

/** The record of an effect whose place another one takes: it runs again if it concerns the object once more. */
export function supersededRecord(record: EffectRecord): EffectRecord {
  return { ...record, input: '' };
}

export const EMPTY_STATE: EffectState = { records: {}, values: {} };

/** Stores the state of effects. Only one process uses it at a time. */
export interface EffectStore {
  /** The state of an object; empty when none is stored. @throws ApiError, TransportError, PlanError */
  readonly load: (owner: KubeObject) => Promise<EffectState>;
  /** Stores the whole state. @throws ApiError, TransportError, PlanError */
  readonly save: (owner: KubeObject, state: EffectState) => Promise<void>;
  /** @throws PlanError `ErrStateTooLarge` when such a state could not be stored */
  readonly assertFits: (owner: KubeObject, state: EffectState) => Promise<void>;
  /**
   * Sets or removes the owner reference of the state, as the owner wants now.
   *
   * @throws ApiError, TransportError
   */
  readonly syncOwnerReference: (owner: KubeObject) => Promise<void>;
  /**
   * Whether its owner, which is being deleted, was deleted with `--cascade=orphan`, as far as the state
   * shows: the garbage collector has removed the owner reference.
   *
   * @throws ApiError, TransportError
   */
  readonly isOrphaned: (owner: KubeObject) => Promise<boolean>;
  /**
   * Removes the owner, which is being deleted, so that the state stays.
   *
   * @returns what stays, as `Secret namespace/name`
   * @throws ApiError, TransportError
   */
  readonly orphan: (owner: KubeObject) => Promise<readonly string[]>;
  /**
   * Lets the state be deleted, because its owner is about to be deleted and needs it no more.
   *
   * @throws ApiError, TransportError
   */
  readonly release: (owner: KubeObject) => Promise<void>;
  /**
   * Forgets the state of an owner that was deleted. If the owner was deleted without a release, because
   * somebody removed its finalizer, tries to release the state now. Does not reject.
   */
  readonly forget: (owner: KubeObject) => Promise<void>;
}

/**
 * Stores nothing: for probes, which may safely be repeated. The effect reconciler itself remembers the state
 * while the process lives.
 */
export const noopStore: EffectStore = {
  load: () => Promise.resolve(EMPTY_STATE),
  save: () => Promise.resolve(),
  assertFits: () => Promise.resolve(),
  syncOwnerReference: () => Promise.resolve(),
  isOrphaned: () => Promise.resolve(false),
  orphan: () => Promise.resolve([]),
  release: () => Promise.resolve(),
  forget: () => Promise.resolve(),
};

/** What is to be done about an effect now. */
export type EffectDecision =
  /** Done: nothing until `inMs` from now, if ever. */
  | { readonly what: 'satisfied'; readonly inMs?: number }
  /** Failed; tried again after `inMs`. */
  | { readonly what: 'later'; readonly inMs: number }
  /** Failed as often as allowed, with a period until that is over; or failed so that only a change helps. */
  | { readonly what: 'exhausted'; readonly inMs?: number }
  | { readonly what: 'run'; readonly attempt: number };

/** Decides from the record what to do about an effect; `everyMs` is its period. */
export function decideEffect(
  record: EffectRecord | undefined,
  wanted: {
    readonly input: string;
    readonly countedFor: string;
    readonly maxAttempts: number;
    readonly everyMs?: number;
    readonly nowMs: number;
    readonly backoff: AttemptBackoff;
  },
): EffectDecision {
  const { everyMs, nowMs } = wanted;
  if (record === undefined || record.input !== wanted.input) return { what: 'run', attempt: 1 };
  const leftMs = everyMs === undefined ? undefined : record.atMs + everyMs - nowMs;
  const isOver = leftMs !== undefined && leftMs <= 0;
  const rest = leftMs === undefined ? {} : { inMs: leftMs };
  if (record.state === 'succeeded') return isOver ? { what: 'run', attempt: 1 } : { what: 'satisfied', ...rest };
  if (record.countedFor !== wanted.countedFor) return { what: 'run', attempt: 1 };
  // Only a change helps, and the end of a period is none.
  if (record.hopeless === true) return { what: 'exhausted' };
  if (isOver) return { what: 'run', attempt: 1 };
  if (record.attempts >= wanted.maxAttempts) return { what: 'exhausted', ...rest };
  const waitMs = record.state === 'failed' ? record.atMs + backoffMs(record.attempts, wanted.backoff) - nowMs : 0;
  return waitMs > 0 ? { what: 'later', inMs: waitMs } : { what: 'run', attempt: record.attempts + 1 };
}

/** Delays between attempts. */
export interface AttemptBackoff {
  /** After the first failure, in milliseconds. @default 10000 */
  readonly baseMs: number;
  /** @default 900000 */
  readonly maxMs: number;
}

export const DEFAULT_ATTEMPT_BACKOFF: AttemptBackoff = { baseMs: 10_000, maxMs: 900_000 };

/** How long after a failure a run is tried again, in milliseconds. */
export function backoffMs(attempts: number, { baseMs, maxMs }: AttemptBackoff): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(Math.max(attempts - 1, 0), 30));
}

/** Hash of what an effect is requested to do. The order of keys does not matter. */
export function inputHash({ plan, input }: Pick<EffectRun, 'plan' | 'input'>): string {
  return createHash('sha256')
    .update(JSON.stringify([plan, sorted(input)]))
    .digest('hex');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
}

/**
 * What attempts are counted for. @param seen - hash of everything that was read for the object, such as keys
 * that are part of no input
 */
export function attemptScope(object: KubeObject, input: string, seen: string): string {
  const { generation, annotations } = object.metadata;
  return [input, generation ?? 0, annotations?.[RECONCILE_AT_ANNOTATION] ?? '', seen].join(' ');
}
