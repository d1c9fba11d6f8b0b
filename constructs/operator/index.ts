export { alertRules } from './monitoring';
export type { AlertRule, AlertRulesProps } from './monitoring';
export { InvalidPropsError } from '../kube/errors';
export { operatorLabels, PLATFORM_MANAGED_BY } from './labels';
export { OperatorMonitoring } from './monitoring';
export type { MonitoringProps, OperatorMonitoringProps } from './monitoring';
export { operatorArgs } from './operator-deployment';
export type { OperatorArgsProps } from './operator-deployment';
export { OperatorDeployment } from './operator-deployment';
export { configFilesProblems, isImageReference, namespaceListProblems, operatorProblems } from './operator-props';
export { operatorDefaults } from './operator-props';
export { hasMultipleVersions, webhookServiceName } from './webhook';
export type { ConversionServing } from './webhook';
export { WebhookCertificate } from './webhook';
export type { IssuerRef, WebhookCertificateProps } from './webhook';
export { webhookProblems } from './operator-props';
export type {
  ConfigDirectoryProps,
  LogLevel,
  OperatorDeploymentProps,
  OperatorSettings,
  ScratchProps,
} from './operator-props';
