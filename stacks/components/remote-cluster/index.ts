export type { BastionArgs, DistributionArgs, NodeArgs, RemoteClusterArgs } from './args';
export { RemoteCluster } from './remote-cluster';
export type { RemoteNode } from './remote-cluster';
