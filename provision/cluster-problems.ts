import type { Problem } from '../constructs/kube/errors';
import { datastoreType, immutableOptions, type ClusterInput, type Node } from './cluster/cluster-input';
import { networkProblems } from './cluster/network-problems';
import { nodeProblems } from './cluster/node-problems';
import { optionProblems, schemaProblems, versionProblems } from './cluster/option-problems';
import { rkeProblems } from './rke';
import { layoutOf } from './rke2-k3s/layout';

/**
 * All problems of a cluster that are found without contacting a machine, with paths into the spec of a
 * Cluster: `nodes[2].address`, `rke2.registrationAddress`. None = `clusterTasks` has a plan for it.
 *
 * @param previous what was applied last, if anything: some fields are immutable, and no minor is skipped
 */
export function clusterProblems(input: ClusterInput, previous?: ClusterInput): readonly Problem[] {
  const versions = versionProblems(input, previous);
  const ofRke = input.distribution === 'rke' ? rkeProblems(input) : [];
  return [
    ...schemaProblems(input),
    ...versions,
    // One problem about the version is enough.
    ...ofRke.filter(({ path }) => versions.length === 0 || path !== 'version'),
    ...nodeProblems(input),
    ...networkProblems(input),
    ...optionProblems(input),
    ...(previous === undefined ? [] : changeProblems(input, previous)),
  ];
}

/** Changes that an existing cluster does not allow. */
function changeProblems(input: ClusterInput, previous: ClusterInput): readonly Problem[] {
  if (input.name !== previous.name) {
    return [{ path: 'name', message: `is "${previous.name}" where it is installed; that cannot be changed` }];
  }
  if (input.distribution !== previous.distribution) {
    const message = `cannot be changed from ${previous.distribution}: make a new cluster and move over`;
    return [{ path: 'distribution', message }];
  }
  return [
    ...immutableOptionProblems(input, previous),
    ...nodeChangeProblems(input, previous),
    ...firstServerProblems(input, previous),
  ];
}

function immutableOptionProblems(input: ClusterInput, previous: ClusterInput): Problem[] {
  const were = immutableOptions(previous);
  return [...immutableOptions(input)].flatMap(([path, now]) => {
    const before = were.get(path) ?? '';
    if (before === now) return [];
    const message = `cannot be changed once the cluster stands: it was ${before === '' ? 'not set' : before}`;
    return [{ path: `${input.distribution}.${path}`, message }];
  });
}

function nodeChangeProblems(input: ClusterInput, previous: ClusterInput): Problem[] {
  if (input.distribution === 'rke') return [];
  return input.nodes.flatMap((node, i) => {
    const before = previous.nodes.find(({ address }) => address === node.address);
    if (before === undefined) return [];
    const at = `nodes[${i}]`;
    const problems: Problem[] = [];
    // The role worker is only labels and taints; the other two decide what runs on the machine.
    if (serverRolesOf(before) !== serverRolesOf(node)) {
      const message = `were ${before.roles.join(', ')}: a node cannot change whether it has controlplane and etcd. Remove the node, then add it again`;
      problems.push({ path: `${at}.roles`, message });
    }
    for (const field of ['internalAddress', 'hostnameOverride'] as const) {
      if (before[field] === node[field]) continue;
      const message = `was ${before[field] ?? 'not set'} and is part of what the node is: remove the node, then add it again`;
      problems.push({ path: `${at}.${field}`, message });
    }
    return problems;
  });
}

const serverRolesOf = ({ roles }: Node): string =>
  (['controlplane', 'etcd'] as const).filter((role) => roles.includes(role)).join();

function firstServerProblems(input: ClusterInput, previous: ClusterInput): Problem[] {
  const has = (role: Node['roles'][number]) => (node: Node) => node.roles.includes(role);
  if (input.distribution === 'rke' || previous.distribution === 'rke') return [];
  // Without these roles there is no layout; `nodeProblems` reports that.
  const begins = datastoreType(input) !== 'etcd' || input.nodes.some(has('etcd'));
  if (!begins || !input.nodes.some(has('controlplane'))) return [];
  const stood = new Set(previous.nodes.filter((node) => serverRolesOf(node) !== '').map(({ address }) => address));
  const { first } = layoutOf(input);
  if (stood.has(first.address)) return [];
  const keeps = input.nodes.some(({ address }) => stood.has(address));
  const message = keeps
    ? 'is new, but as the first server it would begin a second cluster: put it behind the servers that exist'
    : 'none of the servers that exist is left, so that the cluster would be lost: add new ones first, then remove the old';
  return [{ path: `nodes[${input.nodes.indexOf(first)}]`, message }];
}
