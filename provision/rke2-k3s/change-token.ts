import type { Node } from '../cluster/cluster-input';
import { sha256 } from './sha256';
import type { StdinValue, Task } from '../task/task';

/**
 * Whoever carries a plan out runs a step that is to be another than when it last succeeded. Of a change that failed halfway, and is then taken
 * back, that says nothing: the step that failed, and those behind it, are to be what they were, though the machine is not. It would keep a
 * configuration that does not start, and its node would stay cordoned.
 *
 * So each change of what is to be done to a node has a turn, even one back to what was before. The preflight gives it, which runs first and
 * touches nothing, so that one that fails leaves nothing to be made good; the steps read it, and run again because it is another.
 */
export const CHANGE_TOKEN = 'turn';
/** What is to be done to the node, as a hash: a value that the preflight reads. */
export const CHANGE_HASH = 'change';

/**
 * For a preflight: one that refuses a change gives it no turn. Not a count: a machine that is cleaned would begin anew, and give a turn that was
 * there before.
 */
export const ISSUE_CHANGE_TOKEN = `if [ "$count" -eq 0 ]; then
  turn=$(sed -n "s/^$${CHANGE_HASH} //p" "$state/turn" 2>/dev/null || :)
  if [ -z "$turn" ]; then
    turn=$(od -An -N8 -v -tx1 /dev/urandom | tr -d ' \\n')
    printf '%s %s\\n' "$${CHANGE_HASH}" "$turn" | put "$state/turn" 600
  fi
  give ${CHANGE_TOKEN} "$turn"
fi`;

/** The id of a node's preflight. */
export const preflightId = ({ address }: Node): string => `${address}/preflight`;

/** What the steps of a node read. Scripts pass it over: it is part of no marker, so a step that runs again finds everything done. */
export const changeTokenValue = (node: Node): StdinValue => ({
  name: CHANGE_TOKEN,
  from: { output: { task: preflightId(node), name: CHANGE_TOKEN } },
});

/** What a task reads that runs with the steps of a node, and whose own change is no change of the node. */
export const changeTokenTrigger = (node: Node): StdinValue => ({ ...changeTokenValue(node), name: 'with' });

/** What the preflight of a node reads: a hash of the steps that read its turn. Their secrets are not in it. */
export function changeHashValue(node: Node, tasks: readonly Task[]): StdinValue {
  const steps = tasks.filter((task) => readsChangeToken(task, preflightId(node)));
  return { name: CHANGE_HASH, from: { text: sha256(steps.map(({ apply }) => apply).join('\n')) } };
}

/** Whether a task is one of the steps that a preflight gives their turn: one whose change is a change of the node. */
export const readsChangeToken = ({ stdin = [] }: Task, preflight: string): boolean =>
  stdin.some(
    ({ name, from }) =>
      name === CHANGE_TOKEN && 'output' in from && from.output.task === preflight && from.output.name === CHANGE_TOKEN,
  );
