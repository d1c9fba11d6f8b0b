/** What `kindred/testing` exports. */
export { TestEnvironment, type TestEnvironmentOptions } from './environment';
export type { InProcessOperator } from './in-process-operator';
export type { Metrics } from './metrics';
export type { OperatorAuditLog } from './operator-audit';
export type { LogLine, LogLines } from './log-lines';
export type { Exchange, ProxiedRequest } from './fault-proxy/exchange';
export { when, type Fault } from './fault-proxy/fault-proxy';
export * as faults from './fault-proxy/faults';
export type { InstalledPlatform } from './install-platform';
export type { AuditEvent, ControlPlane } from '../local';
export { waitFor, type WaitOptions, type Watched } from './wait-for';
