import type { Reason } from '../../../constructs/core/kind';
import type { Condition } from '../../../constructs/core/kube-object';

/** How an object stands, in the terms that kstatus and people share. */
export type Verdict =
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

/**
 * The conditions of a verdict. `Ready` always stands; `Reconciling` and `Stalled` stand only while they are true, as kstatus wants
 * its "abnormal-true" conditions. A condition keeps its transition time while its status stays.
 */
export function conditionsOf(
  verdict: Verdict,
  generation: number | undefined,
  previous: readonly Condition[],
  now: () => string,
): Condition[] {
  const message = verdict.message.slice(0, MAX_MESSAGE);
  const condition = (type: string, status: Condition['status']): Condition => {
    const before = previous.find((candidate) => candidate.type === type);
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now();
    const { reason } = verdict;
    return {
      type,
      status,
      reason,
      message,
      lastTransitionTime,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    };
  };
  switch (verdict.state) {
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
