export {
  alertRules,
  OperatorMonitoring,
  type AlertRule,
  type AlertRulesProps,
  type MonitoringProps,
  type OperatorMonitoringProps,
} from './monitoring';
export { InvalidPropsError } from '../kube/errors';
export { operatorLabels, PLATFORM_MANAGED_BY } from './labels';
export {
  operatorArgs,
  OperatorDeployment,
  SHUTDOWN_GRACE_SECONDS,
  type OperatorArgsProps,
} from './operator-deployment';
export {
  namespaceListProblems,
  operatorProblems,
  webhookProblems,
  type ConfigDirectoryProps,
  type LogLevel,
  type OperatorDeploymentProps,
  type OperatorSettings,
  type ScratchProps,
} from './operator-props';
export {
  hasMultipleVersions,
  WebhookCertificate,
  webhookServiceName,
  type ConversionServing,
  type IssuerRef,
  type WebhookCertificateProps,
} from './webhook';
