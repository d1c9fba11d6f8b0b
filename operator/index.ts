/** What Kindred's operator offers to those who run kinds of their own (`kindred/operator`). Everything else is internal. */

// Running kinds.
export { runOperator } from './manager';
export type { LeaseOptions, OperatorOptions } from './manager';

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

// Logs, metrics, shutdown.
export { createLogger } from './process/logger';
export type { Logger, LoggerOptions, LogLevel } from './process/logger';
export { OperatorMetrics } from './metrics/operator-metrics';
export type { OperatorMetricsOptions } from './metrics/operator-metrics';
export { ShutdownReason, installShutdown } from './process/lifecycle';
export type { Shutdown, ShutdownOptions } from './process/lifecycle';
