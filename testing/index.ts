/** Building blocks for end-to-end tests of the operator, on any control plane. */
export { adminClient } from './admin-client';
export { operatorBundle, type Program } from './operator-process';
export { expectedChildren, expectedShared } from './expected-children';
export type { ExpectedChild } from './expected-children';
export type { LogLine, LogLines } from './operator-process';
export { Metrics } from './metrics';
export { OperatorAuditLog } from './operator-audit';
export type { AuditedRequest, GrantedRule } from './operator-audit';
export { OperatorProcess } from './operator-process';
export type { HealthResponse, OperatorExit, OperatorProcessOptions } from './operator-process';
