import type { Problem } from '../../constructs/kube/errors';
import { datastoreType, type ClusterInput, type Node } from './cluster-input';
import { parseIp } from './ip';

/** Problems of each node, and between nodes. */
export function nodeProblems(input: ClusterInput): readonly Problem[] {
  const { nodes } = input;
  return [
    ...duplicateProblems(nodes, 'address', ({ address }) => address),
    ...duplicateProblems(nodes, 'internalAddress', ({ internalAddress, address }) => internalAddress ?? address),
    ...duplicateProblems(nodes, 'hostnameOverride', ({ hostnameOverride }) => hostnameOverride),
    ...nodes.flatMap(singleNodeProblems),
    ...roleProblems(input),
  ];
}

/** A problem for a text that looks like an IP address but is none. Names pass. */
export function ipProblems(path: string, text: string): Problem[] {
  const meant = text.includes(':') || /^[0-9.]+$/.test(text);
  if (!meant || parseIp(text) !== undefined) return [];
  return [problem(path, `"${text}" is not an IP address; write it in full, such as 192.0.2.10 or 2001:db8::10`)];
}

type Field = 'address' | 'internalAddress' | 'hostnameOverride';

function duplicateProblems(
  nodes: readonly Node[],
  field: Field,
  valueOf: (node: Node) => string | undefined,
): Problem[] {
  const values = nodes.map((node) => canonicalAddress(valueOf(node)));
  const addresses = nodes.map(({ address }) => canonicalAddress(address));
  return nodes.flatMap((node, i) => {
    const first = values.indexOf(values[i]);
    const value = valueOf(node);
    // Two nodes with one address are one problem, not two.
    const told = field === 'internalAddress' && addresses[first] === addresses[i];
    if (value === undefined || first === i || told) return [];
    return [problem(`nodes[${i}].${field}`, `"${value}" is also that of nodes[${first}]; each node needs its own`)];
  });
}

/** One text for all notations of an address, since IPv6 has many. */
function canonicalAddress(text: string | undefined): string | undefined {
  const ip = text === undefined ? undefined : parseIp(text);
  return ip === undefined ? text : `${ip.length}/${ip.bits}`;
}

const problem = (path: string, message: string): Problem => ({ path, message });

function singleNodeProblems(node: Node, i: number): Problem[] {
  const at = `nodes[${i}]`;
  const problems = [
    ['address', node.address],
    ['internalAddress', node.internalAddress],
    ['bastion.address', node.bastion?.address],
  ].flatMap(([field = '', value = '']) => ipProblems(`${at}.${field}`, value));
  if (node.hostnameOverride?.includes(':') === true) {
    problems.push(problem(`${at}.hostnameOverride`, `"${node.hostnameOverride}" is an address; a node needs a name`));
  }
  for (const key of Object.keys(node.labels ?? {}).filter((label) => label.startsWith('kindred.dev/'))) {
    problems.push(problem(`${at}.labels`, `the label ${key} is ours; choose a key of your own`));
  }
  return problems;
}

function roleProblems(input: ClusterInput): Problem[] {
  const { nodes, distribution } = input;
  const count = (role: Node['roles'][number]): number => nodes.filter(({ roles }) => roles.includes(role)).length;
  const problems: Problem[] = [];
  if (count('controlplane') === 0) {
    problems.push(problem('nodes', 'no node has the role controlplane; give it to at least one'));
  }
  if (distribution === 'rke' && count('worker') === 0) {
    problems.push(problem('nodes', 'no node has the role worker, which RKE needs; give it to at least one'));
  }
  const datastore = datastoreType(input);
  if (datastore === 'etcd') return [...problems, ...etcdMemberProblems(count('etcd'))];
  if (datastore === 'sqlite' && count('controlplane') > 1) {
    problems.push(
      problem('k3s.datastore.type', 'SQLite stands on one server only; choose etcd, or one controlplane node'),
    );
  }
  const unused = nodes.flatMap(({ roles }, i) => (roles.includes('etcd') ? [i] : []));
  const message = `the role etcd means nothing with the datastore ${datastore}; take it away`;
  return [...problems, ...unused.map((i) => problem(`nodes[${i}].roles`, message))];
}

function etcdMemberProblems(members: number): Problem[] {
  if (members === 0) return [problem('nodes', 'no node has the role etcd; give it to one, three or five nodes')];
  if (members % 2 === 1) return [];
  const message =
    `${members} nodes have the role etcd, which bear no more failures than ${members - 1} do: ` +
    `make it ${members - 1} or ${members + 1}`;
  return [problem('nodes', message)];
}
