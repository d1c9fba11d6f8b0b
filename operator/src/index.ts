/** What Kindred's operator offers to those who run kinds of their own (`kindred/operator`). Everything else is internal. */

// Running kinds.
export { runOperator } from './operator';
export type { LeaseOptions, OperatorOptions } from './operator';

// The command line that the operator construct writes into its Deployment.
export { UsageError, parseArguments, usage } from './arguments';
export type { OperatorArguments } from './arguments';

// Reaching a cluster.
export { staticAccess } from './client/cluster-access';
export type { ClusterAccess, Credentials, TlsSettings } from './client/cluster-access';
export { KubeconfigError, clusterAccessFromText, loadClusterAccess } from './client/kubeconfig';
export type { KubeconfigOptions } from './client/kubeconfig';
export { createApiClient } from './client/http-api-client';
export type { HttpApiClientOptions } from './client/http-api-client';
export type {
  ApiClient,
  ApplyOptions,
  CreateOptions,
  DeleteOptions,
  ListOptions,
  ListPage,
  ObjectRef,
  PatchOptions,
  RequestOptions,
  WatchEvent,
  WatchOptions,
} from './client/api-client';
export { ApiError, TransportError } from './client/errors';
export type { ApiStatus } from './client/errors';

// Logs, metrics, and the way down.
export { createLogger } from './runtime/logger';
export type { Logger, LoggerOptions, LogLevel } from './runtime/logger';
export { OperatorMetrics } from './runtime/metrics';
export type { OperatorMetricsOptions } from './runtime/metrics';
export { ShutdownReason, installShutdown } from './runtime/shutdown';
export type { Shutdown, ShutdownOptions } from './runtime/shutdown';
