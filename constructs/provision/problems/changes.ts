import type { Problem } from '../../kube/errors';
import type { ClusterInput, Node } from '../cluster-input';
import { fixedOptions } from '../fixed-options';
import { datastoreOf, layoutOf } from '../server/layout';

/** What cannot be changed about a cluster that stands. */
export function changeProblems(input: ClusterInput, previous: ClusterInput): readonly Problem[] {
  if (input.name !== previous.name) {
    return [{ path: 'name', message: `is "${previous.name}" where it is installed; that cannot be changed` }];
  }
  if (input.distribution !== previous.distribution) {
    const message = `cannot be changed from ${previous.distribution}: make a new cluster and move over`;
    return [{ path: 'distribution', message }];
  }
  return [...fixedProblems(input, previous), ...nodeChanges(input, previous), ...serverChanges(input, previous)];
}

function fixedProblems(input: ClusterInput, previous: ClusterInput): Problem[] {
  const were = fixedOptions(previous);
  return [...fixedOptions(input)].flatMap(([path, now]) => {
    const before = were.get(path) ?? '';
    if (before === now) return [];
    const message = `cannot be changed once the cluster stands: it was ${before === '' ? 'not set' : before}`;
    return [{ path: `${input.distribution}.${path}`, message }];
  });
}

function nodeChanges(input: ClusterInput, previous: ClusterInput): Problem[] {
  if (input.distribution === 'rke') return [];
  return input.nodes.flatMap((node, i) => {
    const before = previous.nodes.find(({ address }) => address === node.address);
    if (before === undefined) return [];
    const at = `nodes[${i}]`;
    const problems: Problem[] = [];
    // A worker's role is labels and taints; the other two are what runs there.
    if (partsOf(before) !== partsOf(node)) {
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

const partsOf = ({ roles }: Node): string =>
  (['controlplane', 'etcd'] as const).filter((role) => roles.includes(role)).join();

function serverChanges(input: ClusterInput, previous: ClusterInput): Problem[] {
  const has = (role: Node['roles'][number]) => (node: Node) => node.roles.includes(role);
  if (input.distribution === 'rke' || previous.distribution === 'rke') return [];
  // Without these roles there is no plan; that is reported elsewhere.
  const begins = datastoreOf(input) !== 'etcd' || input.nodes.some(has('etcd'));
  if (!begins || !input.nodes.some(has('controlplane'))) return [];
  const stood = new Set(previous.nodes.filter((node) => partsOf(node) !== '').map(({ address }) => address));
  const { first } = layoutOf(input);
  if (stood.has(first.address)) return [];
  const keeps = input.nodes.some(({ address }) => stood.has(address));
  const message = keeps
    ? 'is new, but as the first server it would begin a second cluster: put it behind the servers that exist'
    : 'none of the servers that exist is left, so that the cluster would be lost: add new ones first, then remove the old';
  return [{ path: `nodes[${input.nodes.indexOf(first)}]`, message }];
}
