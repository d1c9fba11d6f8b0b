import type { K3sInput, Rke2Input } from '../cluster-input';
import type { Task } from '../task';

/** The plan of a cluster of RKE2 or K3s. */
export function serverBasedTasks(input: Rke2Input | K3sInput): readonly Task[] {
  throw new TypeError(`${input.name}: the plan of ${input.distribution} is being written`);
}
