/** What Kindred's operator offers to those who run kinds of their own (`kindred/operator`). Everything else is internal. */

// Running kinds: as a whole program, or within a program of one's own.
export { main, type MainOptions } from './main';
export type { EffectEngineFactory, EffectSettings } from './operator-options';
export { runOperator, type LeaseOptions, type OperatorOptions } from './manager';

// Executing the effects of kinds.
export { runPlans, type Plans, type RunPlansOptions } from './run-plans';
export type { AttemptBackoff } from './effects/effect-state';
export {
  PlanError,
  RunInterruptedError,
  type PlanResult,
  type PlanRun,
  type PlanRunner,
  type RunProgress,
  type RunValues,
  type StatusFields,
} from './effects/plan-runner';
export type { EffectEngine, RunningEffects } from './reconcile/context';

// Reaching a cluster.
export { staticAccess, type ClusterAccess, type Credentials, type TlsSettings } from './client/cluster-access';
export { clusterAccessFromText, KubeconfigError, loadClusterAccess, type KubeconfigOptions } from './client/kubeconfig';
export { createApiClient, type HttpApiClientOptions } from './client/http-api-client';
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
export { ApiError, TransportError, type ApiStatus } from './client/errors';

// Logs, metrics, shutdown.
export { createLogger, type Logger, type LoggerOptions, type LogLevel } from './process/logger';
export { OperatorMetrics, type OperatorMetricsOptions } from './metrics/operator-metrics';
export { installShutdown, ShutdownReason, type Shutdown, type ShutdownOptions } from './process/lifecycle';
