export { clusterTasks, KUBECONFIG_OUTPUT, kubeconfigOutput, type PlanOptions } from './plan';
export { clusterProblems } from './cluster-problems';
export {
  clusterInput,
  type ClusterInput,
  type InstallerSource,
  type K3sInput,
  type K3sOptions,
  type Node,
  type NodeRole,
  type Rke2Input,
  type Rke2Options,
  type RkeInput,
  type RkeOptions,
  type TypedClusterSpec,
} from './cluster/cluster-input';
export { remainingMembers, removalFacts, type RemovalFacts } from './rke2-k3s/membership';
export type { Machine, OutputRef, ScriptResult, StdinValue, Task, ValueSource } from './task/task';
export {
  base64,
  decodeOutput,
  encodeStdin,
  externalSources,
  NoResultError,
  parseScriptResult,
  renderSource,
  sshCommand,
  type ExternalSource,
  type LoginOptions,
  type NamedValue,
} from './task/script-io';
