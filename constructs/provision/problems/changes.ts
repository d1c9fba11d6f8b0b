import type { Problem } from '../../core/errors';
import type { ClusterInput, Node } from '../cluster-input';
import { datastoreOf, layoutOf } from '../server/layout';

/** Options that a cluster has for life, by distribution, as paths below them. */
const FIXED = {
  rke: ['clusterCidr', 'serviceCidr', 'clusterDomain', 'network.plugin'],
  rke2: ['clusterCidrs', 'serviceCidrs', 'clusterDomain', 'dataDir', 'cni'],
  k3s: ['clusterCidrs', 'serviceCidrs', 'clusterDomain', 'dataDir', 'flannelBackend', 'datastore.type'],
} as const;

/** Values of some of them that are the same as none. */
const DEFAULTS: Readonly<Record<string, string>> = {
  clusterDomain: 'cluster.local',
  clusterCidr: '10.42.0.0/16',
  serviceCidr: '10.43.0.0/16',
  clusterCidrs: '10.42.0.0/16',
  serviceCidrs: '10.43.0.0/16',
  'network.plugin': 'canal',
  'datastore.type': 'etcd',
};

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
  return FIXED[input.distribution].flatMap((path) => {
    const [before, now] = [previous.options, input.options].map((options) => valueAt(options, path));
    if (before === now) return [];
    const message = `cannot be changed once the cluster stands: it was ${before === '' ? 'not set' : String(before)}`;
    return [{ path: `${input.distribution}.${path}`, message }];
  });
}

function valueAt(options: ClusterInput['options'], path: string): string {
  const value = path
    .split('.')
    .reduce<unknown>(
      (at, key) => (typeof at === 'object' && at !== null ? (at as Readonly<Record<string, unknown>>)[key] : undefined),
      options,
    );
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'string' ? value : (DEFAULTS[path] ?? '');
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
