import { datastoreType, type Node } from '../cluster/cluster-input';
import type { Rke2K3sInput } from './distribution';

/** The part of each node in a cluster of RKE2 or K3s. */
export interface ClusterLayout {
  /** The server that starts the cluster: one with etcd, and with the API too if there is such a node. */
  readonly first: Node;
  /** The server on which kubectl runs. */
  readonly admin: Node;
  /** All servers, in the order of their installation: the first, others with etcd, those without. */
  readonly servers: readonly Node[];
  readonly agents: readonly Node[];
  /** Where nodes join: a name or an address, without brackets. */
  readonly registration: string;
}

/** @throws TypeError when no node can start the cluster, which `clusterProblems` reports */
export function layoutOf(input: Rke2K3sInput): ClusterLayout {
  const has = (role: Node['roles'][number]) => (node: Node) => node.roles.includes(role);
  const servers = input.nodes.filter(isServer);
  const beginners = datastoreType(input) === 'etcd' ? servers.filter(has('etcd')) : servers.filter(has('controlplane'));
  const first = beginners.find(has('controlplane')) ?? beginners[0];
  const admin = first !== undefined && has('controlplane')(first) ? first : servers.find(has('controlplane'));
  if (first === undefined || admin === undefined) {
    throw new TypeError(`${input.name}: the plan needs nodes with the roles controlplane and etcd`);
  }
  const others = servers.filter((node) => node !== first);
  return {
    first,
    admin,
    servers: [first, ...others.filter(has('etcd')), ...others.filter((node) => !has('etcd')(node))],
    agents: input.nodes.filter((node) => !isServer(node)),
    registration: input.options.registrationAddress ?? internalAddress(first),
  };
}

/** Whether a node runs the server, not only the agent. */
export const isServer = ({ roles }: Node): boolean => roles.includes('controlplane') || roles.includes('etcd');

/** The address at which other nodes reach a node. */
export const internalAddress = (node: Node): string => node.internalAddress ?? node.address;

/** A host in a URL: IPv6 addresses in brackets. */
export const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);
