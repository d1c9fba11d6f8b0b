import type { ClusterInput } from './cluster/cluster-input';
import { rkeKubeconfig, rkeTasks, type RkeTaskOptions } from './rke';
import type { RemoveNodesOptions } from './rke2-k3s/membership';
import { rke2K3sTasks } from './rke2-k3s/tasks';
import type { OutputRef, Task } from './task/task';

/** Name of the output with the kubeconfig, in every plan. */
export const KUBECONFIG_OUTPUT = 'kubeconfig';

/** Options of a plan that depend on how it will be executed. */
export interface PlanOptions {
  /** Only for RKE. @default those of `rkeTasks` */
  readonly rke?: RkeTaskOptions;
  /** Only for RKE2 and K3s. @default those of `removeNodesTask` */
  readonly server?: RemoveNodesOptions;
}

/**
 * The plan of a cluster: what to do on which machine, each task after those it needs.
 *
 * The input must have no problems: check it with `clusterProblems` first.
 *
 * @throws TypeError when no node can start the cluster
 */
export function clusterTasks(input: ClusterInput, options: PlanOptions = {}): readonly Task[] {
  return input.distribution === 'rke' ? rkeTasks(input, options.rke) : rke2K3sTasks(input, options.server);
}

/** The task and output with the kubeconfig of the cluster. */
export function kubeconfigOutput(input: ClusterInput, options: PlanOptions = {}): OutputRef {
  if (input.distribution === 'rke') return rkeKubeconfig(options.rke);
  return { task: 'kubeconfig', name: KUBECONFIG_OUTPUT };
}
