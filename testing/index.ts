/** Building blocks for end-to-end tests of the operator, on any control plane. */
export { adminClient } from './admin-client';
export {
  operatorBundle,
  OperatorProcess,
  type HealthResponse,
  type LogLine,
  type LogLines,
  type OperatorExit,
  type OperatorProcessOptions,
  type Program,
} from './operator-process';
export { expectedChildren, expectedShared, type ExpectedChild } from './expected-children';
export { Metrics } from './metrics';
export { OperatorAuditLog, type AuditedRequest, type GrantedRule } from './operator-audit';
