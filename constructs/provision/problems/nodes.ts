import type { Problem } from '../../core/errors';
import type { ClusterInput, Node } from '../cluster-input';

/** What is wrong with the nodes among each other. */
export function nodeProblems({ nodes, ...input }: ClusterInput): readonly Problem[] {
  return [
    ...(['address', 'internalAddress', 'hostnameOverride'] as const).flatMap((field) => duplicates(nodes, field)),
    ...roleProblems(nodes, input.distribution === 'k3s' ? (input.options.datastore?.type ?? 'etcd') : 'etcd'),
  ];
}

function duplicates(nodes: readonly Node[], field: 'address' | 'internalAddress' | 'hostnameOverride'): Problem[] {
  return nodes.flatMap((node, i) => {
    const value = node[field];
    const first = nodes.findIndex((other) => other[field] === value);
    if (value === undefined || first === i) return [];
    return [
      { path: `nodes[${i}].${field}`, message: `"${value}" is also that of nodes[${first}]; each node needs its own` },
    ];
  });
}

function roleProblems(nodes: readonly Node[], datastore: 'etcd' | 'sqlite' | 'external'): Problem[] {
  const problems: Problem[] = [];
  const count = (role: Node['roles'][number]): number => nodes.filter(({ roles }) => roles.includes(role)).length;
  if (count('controlplane') === 0) {
    problems.push({ path: 'nodes', message: 'no node has the role controlplane; give it to at least one' });
  }
  const members = count('etcd');
  if (datastore === 'etcd' && members === 0) {
    problems.push({ path: 'nodes', message: 'no node has the role etcd; give it to one, three or five nodes' });
  }
  if (datastore === 'etcd' && members > 0 && members % 2 === 0) {
    problems.push({
      path: 'nodes',
      message:
        `${members} nodes have the role etcd, which survive no more failures than ${members - 1}: ` +
        `make it ${members - 1} or ${members + 1}`,
    });
  }
  return problems;
}
