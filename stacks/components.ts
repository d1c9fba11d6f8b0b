/** The entry `kindred/stacks`: what Kindred offers to Pulumi programs. Everything else is internal. */

// cdk8s constructs as Pulumi resources.
export {
  addKindChildren,
  BridgeError,
  ConstructResources,
  KubernetesObject,
  mutableContent,
  outputs,
  propertyPath,
  resourceOptions,
  typeToken,
  type AwaitOptions,
  type BridgeOptions,
  type ConstructResourcesArgs,
  type KindChildrenOptions,
  type PathStep,
  type ServerMetadata,
  type TokenOptions,
} from './bridge';

// The platform, and objects of its kinds.
export { PlatformComponent } from './platform';
export type { GuardedNamespaceArgs, PlatformComponentArgs, PlatformOperatorArgs } from './platform-args';
export {
  KindComponent,
  READY_CONDITION,
  type KindComponentArgs,
  type KindMetadata,
  type WithOutputs,
} from './kind-component';

// Clusters on machines.
export {
  RemoteCluster,
  type BastionArgs,
  type DistributionArgs,
  type NodeArgs,
  type RemoteClusterArgs,
  type RemoteNode,
} from './remote-cluster/remote-cluster';
