export { alertRules } from './alert-rules';
export type { AlertRule, AlertRulesProps } from './alert-rules';
export { InvalidPropsError } from './invalid-props-error';
export { operatorLabels, PLATFORM_MANAGED_BY } from './labels';
export { OperatorMonitoring } from './monitoring';
export type { MonitoringProps, OperatorMonitoringProps } from './monitoring';
export { operatorArgs } from './operator-args';
export type { OperatorArgsProps } from './operator-args';
export { OperatorDeployment } from './operator-deployment';
export { configFilesProblems, isImage, namespaceListProblems, operatorProblems } from './operator-problems';
export { operatorDefaults } from './operator-props';
export { hasVersions, webhookServiceName } from './webhook';
export type { ConversionServing } from './webhook';
export { WebhookCertificate } from './webhook-certificate';
export type { IssuerRef, WebhookCertificateProps } from './webhook-certificate';
export { webhookProblems } from './webhook-problems';
export type {
  ConfigDirectoryProps,
  LogLevel,
  OperatorDeploymentProps,
  OperatorSettings,
  ScratchProps,
} from './operator-props';
