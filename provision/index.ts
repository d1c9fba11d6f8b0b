export { NoAnswerError, decodeOutput, parseScriptResult } from './task/script-io';
export { clusterInput } from './cluster/cluster-input';
export type {
  ClusterInput,
  InstallerSource,
  K3sInput,
  K3sOptions,
  Node,
  NodeRole,
  Rke2Input,
  Rke2Options,
  RkeInput,
  RkeOptions,
  TypedClusterSpec,
} from './cluster/cluster-input';
export { clusterProblems } from './cluster-problems';
export { sshCommand } from './task/script-io';
export type { LoginOptions } from './task/script-io';
export { KUBECONFIG_OUTPUT, clusterTasks, kubeconfigOutput } from './plan';
export type { PlanOptions } from './plan';
export { apiServers, remainingMembers } from './rke2-k3s/membership';
export type { RemovalFacts } from './rke2-k3s/membership';
export { base64, externalSources, renderSource, encodeStdin } from './task/script-io';
export type { ExternalSource, NamedValue } from './task/script-io';
export type { ScriptResult, Machine, OutputRef, ValueSource, StdinValue, Task } from './task/task';
