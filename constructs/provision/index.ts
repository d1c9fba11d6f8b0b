export { NoAnswerError, outputText, parseAnswer } from './answer';
export { clusterInput } from './cluster-input';
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
} from './cluster-input';
export { clusterProblems } from './cluster-problems';
export { commandLine } from './command-line';
export type { LoginOptions } from './command-line';
export { KUBECONFIG_OUTPUT, clusterTasks, kubeconfigOf } from './plan';
export type { PlanOptions } from './plan';
export { apiServers, stillMembers } from './server/members';
export type { RemovalFacts } from './server/members';
export { base64, leavesOf, renderSource, stdinText } from './stdin';
export type { LeafSource, NamedValue } from './stdin';
export type { Answer, Machine, OutputRef, Source, StdinValue, Task } from './task';
