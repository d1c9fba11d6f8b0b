import type { Reason } from '../../constructs/kind/kind';
import type { Condition } from '../../constructs/kube/kube-object';

/** How an object stands, in the terms that kstatus and people share. */
export type Readiness =
  /** All children are applied and current. */
  | ({ readonly state: 'ready' } & Reason)
  /** On its way: a child is not current yet. */
  | ({ readonly state: 'progressing' } & Reason)
  /** Failed, and tried again by itself. */
  | ({ readonly state: 'failing' } & Reason)
  /** Only a person can help. */
  | ({ readonly state: 'stalled' } & Reason)
  /** A person asked for no reconcile. */
  | ({ readonly state: 'paused' } & Reason);

/** The longest message that a condition holds, in characters. Source: `metav1.Condition`. */
const MAX_MESSAGE = 32768;

/** A condition of a kind's own. */
export interface OwnCondition extends Reason {
  readonly type: string;
  readonly status: Condition['status'];
}

/** What conditions are made with. */
export interface ConditionOptions {
  readonly generation: number | undefined;
  /** Those that stand. */
  readonly previous: readonly Condition[];
  readonly now: () => string;
  /** Conditions of the kind's own. @default none */
  readonly own?: readonly OwnCondition[];
  /** Write `lastUpdateTime` too. @default false */
  readonly lastUpdateTime?: boolean;
}

/**
 * The conditions of a verdict. `Ready` always stands; `Reconciling` and `Stalled` stand only while they are true, as kstatus wants
 * its "abnormal-true" conditions. A condition keeps its transition time while its status stays.
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

/** Never in the middle of a character: the server would store another one, and each reconcile would find a difference. */
function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, isHalf ? length - 1 : length);
}
