/** The test engine: runs Pulumi programs and carries their registrations out. See README.md. */
export { Engine } from './engine/engine';
export type { ConfigValue, EngineOptions } from './engine/engine';
export { DeploymentError, InterruptedError, PartialError } from './engine/recorder';
export type { AnnouncedOperation, RunOptions } from './engine/run';
export type { Program } from './engine/program';
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
} from './engine/provider';
export type { LogEntry, Operation, Severity, SpawnedProcess } from './engine/recorder';
export { Result } from './engine/recorder';
export { StackState } from './engine/state';
export type { PendingOperation, ResourceState } from './engine/state';
export { Secret, Unknown, equal, hasSecret, hasUnknown, plain, plainValues, unknown, unwrap } from './engine/values';
export type { Plain, Value, Values } from './engine/values';
export { commandProvider } from './providers/command';
export { kubernetesProvider } from './providers/kubernetes';
export type { KubernetesOptions } from './providers/kubernetes';
export { MemoryCluster, memoryClusters } from './providers/memory-cluster';
