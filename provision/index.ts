export { NoAnswerError, outputText, parseAnswer } from './task/script-io';
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
export { clusterProblems } from './problems';
export { commandLine } from './task/script-io';
export type { LoginOptions } from './task/script-io';
export { KUBECONFIG_OUTPUT, clusterTasks, kubeconfigOf } from './plan';
export type { PlanOptions } from './plan';
export { apiServers, stillMembers } from './rke2-k3s/members';
export type { RemovalFacts } from './rke2-k3s/members';
export { base64, leavesOf, renderSource, stdinText } from './task/script-io';
export type { LeafSource, NamedValue } from './task/script-io';
export type { Answer, Machine, OutputRef, Source, StdinValue, Task } from './task/task';
