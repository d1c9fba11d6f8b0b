/** Building blocks for end-to-end tests of the operator, on any control plane. */
export { kubeconfigClient } from './kubeconfig-client';
export {
  operatorBundle,
  OperatorProcess,
  type HealthResponse,
  type OperatorExit,
  type OperatorProcessOptions,
  type Program,
} from './operator-process';
export { LogLines, type LogLine } from './log-lines';
export { expectedChildren, expectedShared, type ExpectedChild } from './expected-children';
export { Metrics } from './metrics';
export { OperatorAuditLog, type AuditedRequest, type GrantedRule } from './operator-audit';
