export { KUBECONFIG_OUTPUT, clusterTasks, kubeconfigOutput } from './plan';
export type { PlanOptions } from './plan';
export { clusterProblems } from './cluster-problems';
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
export { apiServers, remainingMembers } from './rke2-k3s/membership';
export type { RemovalFacts } from './rke2-k3s/membership';
export type { ScriptResult, Machine, OutputRef, ValueSource, StdinValue, Task } from './task/task';
export { NoAnswerError, decodeOutput, parseScriptResult } from './task/script-io';
export { sshCommand } from './task/script-io';
export type { LoginOptions } from './task/script-io';
export { base64, externalSources, renderSource, encodeStdin } from './task/script-io';
export type { ExternalSource, NamedValue } from './task/script-io';
