import type { Problem } from '../kube/errors';
import type { ClusterInput } from './cluster-input';
import { changeProblems } from './problems/changes';
import { networkProblems } from './problems/networks';
import { nodeProblems } from './problems/nodes';
import { optionProblems } from './problems/options';
import { schemaProblems } from './problems/schema';
import { versionProblems } from './problems/versions';
import { rkeProblems } from './rke';

/**
 * What is wrong with a cluster before any machine is asked, all of it at once, with paths into the spec of a Cluster: `nodes[2].address`,
 * `rke2.registrationAddress`. None = `clusterTasks` has a plan for it.
 *
 * @param previous what was applied last, if anything: some things cannot change, and versions go one minor at a time
 */
export function clusterProblems(input: ClusterInput, previous?: ClusterInput): readonly Problem[] {
  const versions = versionProblems(input, previous);
  const ofRke = input.distribution === 'rke' ? rkeProblems(input) : [];
  return [
    ...schemaProblems(input),
    ...versions,
    // One word about a version is enough.
    ...ofRke.filter(({ path }) => versions.length === 0 || path !== 'version'),
    ...nodeProblems(input),
    ...networkProblems(input),
    ...optionProblems(input),
    ...(previous === undefined ? [] : changeProblems(input, previous)),
  ];
}
