import type { Node } from '../cluster/cluster-input';
import { sha256 } from '../task/sha256';
import type { StdinValue, Task } from '../task/task';

/**
 * Name of a node's change token, an output of its preflight: a new value for each change of the node, also
 * for a change back to an earlier state.
 *
 * The runner of a plan runs a task again when the task differs from its last success. That misses a change
 * that failed halfway and is then reverted: the tasks equal their last success again, but the machine does
 * not. It would keep a configuration that does not start, and its node would stay cordoned. Tasks that read
 * the change token run again.
 *
 * The preflight issues it, since it runs first and changes nothing, so a failed preflight leaves nothing to
 * repair.
 */
export const CHANGE_TOKEN = 'turn';
/** Name of the value that the preflight reads: a hash of what the tasks of the node will do. */
export const CHANGE_HASH = 'change';

/**
 * For a preflight: issues the change token, unless there are problems. The token is random: a counter would
 * start again on a machine that was cleaned, and repeat a token.
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

/**
 * The value that a node's tasks read. Scripts ignore it and no marker includes it, so a task that runs again
 * finds everything done.
 */
export const changeTokenValue = (node: Node): StdinValue => ({
  name: CHANGE_TOKEN,
  from: { output: { task: preflightId(node), name: CHANGE_TOKEN } },
});

/**
 * The same for a task that must run along with a node's tasks, but whose own change is no change of the node.
 */
export const changeTokenTrigger = (node: Node): StdinValue => ({ ...changeTokenValue(node), name: 'with' });

/**
 * The value that the preflight of a node reads: a hash of the tasks that read its change token, without their
 * secrets.
 */
export function changeHashValue(node: Node, tasks: readonly Task[]): StdinValue {
  const steps = tasks.filter((task) => readsChangeToken(task, preflightId(node)));
  return { name: CHANGE_HASH, from: { text: sha256(steps.map(({ apply }) => apply).join('\n')) } };
}

/**
 * Whether a task reads the change token of a preflight, that is, whether a change of the task is a change of
 * the node.
 */
export const readsChangeToken = ({ stdin = [] }: Task, preflight: string): boolean =>
  stdin.some(
    ({ name, from }) =>
      name === CHANGE_TOKEN && 'output' in from && from.output.task === preflight && from.output.name === CHANGE_TOKEN,
  );
