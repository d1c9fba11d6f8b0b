import type { Reason } from '../../constructs/kind/kind';
import type { Condition } from '../../constructs/kube/kube-object';

/** The readiness of an object, in the terms of kstatus. */
export type Readiness =
  /** All children are applied and current. */
  | ({ readonly state: 'ready' } & Reason)
  /** Not ready yet: a child is not current. */
  | ({ readonly state: 'progressing' } & Reason)
  /** Failed; tried again automatically. */
  | ({ readonly state: 'failing' } & Reason)
  /** Only a person can help. */
  | ({ readonly state: 'stalled' } & Reason)
  /** A person has paused the reconciling. */
  | ({ readonly state: 'paused' } & Reason);

/** A condition of a kind's own. */
export interface OwnCondition extends Reason {
  readonly type: string;
  readonly status: Condition['status'];
}

/** Options of `conditionsOf`. */
export interface ConditionOptions {
  readonly generation: number | undefined;
  /** The existing conditions. */
  readonly previous: readonly Condition[];
  readonly now: () => string;
  /** Conditions of the kind's own. @default none */
  readonly own?: readonly OwnCondition[];
  /** Write `lastUpdateTime` too. @default false */
  readonly lastUpdateTime?: boolean;
}

/**
 * The conditions of a readiness. `Ready` is always there; `Reconciling` and `Stalled` only while they are
 * true, as kstatus wants its "abnormal-true" conditions. A condition keeps its transition time while its
 * status stays.
 */
export function conditionsOf(readiness: Readiness, options: ConditionOptions): Condition[] {
  const { reason, message } = readiness;
  const common = (type: string, status: Condition['status']): OwnCondition => ({ type, status, reason, message });
  return [...abnormalTrue(readiness.state, common), ...(options.own ?? [])].map((claim) => withTimes(claim, options));
}

function abnormalTrue(
  state: Readiness['state'],
  condition: (type: string, status: Condition['status']) => OwnCondition,
): readonly OwnCondition[] {
  switch (state) {
    case 'ready':
      return [condition('Ready', 'True')];
    case 'progressing':
    case 'failing':
      return [condition('Ready', 'False'), condition('Reconciling', 'True')];
    case 'stalled':
      return [condition('Ready', 'False'), condition('Stalled', 'True')];
    case 'paused':
      return [condition('Ready', 'Unknown')];
  }
}

function withTimes(claim: OwnCondition, { generation, previous, now, lastUpdateTime }: ConditionOptions): Condition {
  const { type, status, reason } = claim;
  const message = cut(claim.message, MAX_MESSAGE);
  const before = previous.find((candidate) => candidate.type === type);
  const isSame = before?.status === status && before.reason === reason && before.message === message;
  return {
    ...{ type, status, reason, message },
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : now(),
    ...(lastUpdateTime === true ? { lastUpdateTime: (isSame ? before.lastUpdateTime : undefined) ?? now() } : {}),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
}

/** The longest message of a condition, in characters. Source: `metav1.Condition`. */
const MAX_MESSAGE = 32768;

/**
 * Cuts a text, but not within a character: the server would store another one, and each reconcile would find
 * a difference.
 */
function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, isHalf ? length - 1 : length);
}
