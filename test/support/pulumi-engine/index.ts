/** The test engine: runs Pulumi programs and carries their registrations out. See README.md. */
export { Engine } from './engine';
export type { ConfigValue, EngineOptions } from './engine';
export { DeploymentError, InterruptedError, PartialError } from './errors';
export type { Announced, RunOptions } from './gate';
export type { Program } from './program';
export type {
  CheckRequest,
  CreateRequest,
  DeleteRequest,
  Diff,
  DiffRequest,
  PreviewRequest,
  Provider,
  ProviderPackage,
  ProviderRequest,
  ReadRequest,
  UpdateRequest,
} from './provider';
export type { LogEntry, Operation, Severity, SpawnedProcess } from './recorder';
export { Result } from './result';
export { StackState } from './state';
export type { PendingOperation, ResourceState } from './state';
export { Secret, Unknown, equal, hasSecret, hasUnknown, plain, plainValues, unknown, unwrap } from './values';
export type { Plain, Value, Values } from './values';
export { commandProvider } from './providers/command';
export { kubernetesProvider } from './providers/kubernetes';
export type { KubernetesOptions } from './providers/kubernetes';
export { MemoryCluster, memoryClusters } from './providers/kubernetes/memory';
