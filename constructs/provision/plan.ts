import type { ClusterInput } from './cluster-input';
import { serverBasedTasks } from './server/tasks';
import type { OutputRef, Task } from './task';

/** Name of the output that is a kubeconfig, in every plan. */
export const KUBECONFIG_OUTPUT = 'kubeconfig';

/**
 * The plan of a cluster: what must be done on which machine, in an order in which each task stands after those it needs.
 *
 * The input must have no problems: ask `clusterProblems` first.
 */
export function clusterTasks(input: ClusterInput): readonly Task[] {
  switch (input.distribution) {
    case 'rke':
      throw new TypeError(`${input.name}: no tasks for rke yet`);
    case 'rke2':
    case 'k3s':
      return serverBasedTasks(input);
  }
}

/** Which task's output is the kubeconfig of the cluster. */
export function kubeconfigOf(input: ClusterInput): OutputRef {
  const task = clusterTasks(input).find(({ outputs = [] }) => outputs.includes(KUBECONFIG_OUTPUT));
  if (task === undefined) throw new TypeError(`the plan of ${input.name} has no task that gives a kubeconfig`);
  return { task: task.id, name: KUBECONFIG_OUTPUT };
}
