/** The entry `kindred/stacks`: what Kindred offers to Pulumi programs. Everything else is internal. */

// cdk8s constructs as Pulumi resources.
export {
  BridgeError,
  ConstructResources,
  KubernetesObject,
  addKindChildren,
  mutableContent,
  outputs,
  propertyPath,
  resourceOptions,
  typeToken,
} from './bridge';
export type {
  AwaitOptions,
  BridgeOptions,
  ConstructResourcesArgs,
  KindChildrenOptions,
  PathStep,
  ServerMetadata,
  TokenOptions,
} from './bridge';

// The platform, and objects of its kinds.
export { PlatformComponent } from './platform';
export type { GuardedNamespaceArgs, PlatformComponentArgs, PlatformOperatorArgs } from './platform-args';
export { KindComponent, READY_CONDITION } from './kind-component';
export type { KindComponentArgs, KindMetadata, WithOutputs } from './kind-component';

// Clusters on machines.
export { RemoteCluster } from './remote-cluster/remote-cluster';
export type {
  BastionArgs,
  DistributionArgs,
  NodeArgs,
  RemoteClusterArgs,
  RemoteNode,
} from './remote-cluster/remote-cluster';
