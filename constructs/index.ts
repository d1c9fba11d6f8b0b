/** The public API for stack authors and kind authors. Everything else in constructs/ is internal. */

// Defining kinds.
export { cel } from './kind/schema/cel';
export type { CelRule } from './kind/schema/cel';
export type { Effect, EffectPhase, InputReader } from './kind/effects';
export {
  anyValue,
  atomicList,
  dns1035Label,
  dnsLabel,
  dnsSubdomain,
  embeddedResource,
  immutable,
  intOrString,
  listMap,
  listSet,
  mapOf,
  preserveUnknownFields,
  quantity,
  stringMap,
  withRule,
} from './kind/fields';
export type { ListLimits, StringMapLimits } from './kind/fields';
export { defineKind } from './kind/kind';
export type {
  AnyKind,
  CommonStatus,
  ConditionType,
  Kind,
  KindObject,
  KindProps,
  KindSpec,
  Observation,
  ObservedChildren,
  PrinterColumn,
  Reason,
  ReportedCondition,
  Sample,
  ScaleSubresource,
  TypedObject,
} from './kind/kind';
export type { Condition, Json, JsonObject, KubeObject, ObjectMeta, OwnerReference } from './kube/kube-object';
export type { NameFormat, NameRule } from './kube/names';
export { owned } from './kube/resource-type';
export type { CronJobObject, WorkloadObject } from './kube/resource-type';
export type { Finalizer, Seed, SharedChildren } from './kind/kind-props';
export { compareQuantities, isQuantity } from './kind/quantity';
export type { ObjectKeyRef, ObjectRef, Read } from './kind/reads';
export type { ResourceScope, ResourceType } from './kube/resource-type';
export type { StructuralSchema } from './kind/schema/structural-schema';

// Annotations that users set on objects.
export { ADOPT_ANNOTATION, PAUSED_ANNOTATION, RECONCILE_AT_ANNOTATION } from './kube/envelope';

// Rendering and checking objects.
export { ConversionError, InvalidObjectError, KindDefinitionError, RenderError } from './kube/errors';
export type { Problem } from './kube/errors';
export { renderChildren, renderShared } from './kind/render';
export type { ActiveSeed, RenderedChild } from './kind/render';
export { validateObject } from './kind/validate';

// Versions.
export { CONVERSION_ANNOTATION, convertObject } from './kind/conversion';
export type { KindVersion, OtherVersion, OtherVersions } from './kind/versions';

// CRDs and objects.
export {
  ARGO_CD_HEALTH_LUA,
  CustomResource,
  CustomResourceDefinition,
  MissingConversionWebhookError,
  argoCdHealth,
  breakingChanges,
  crdManifest,
} from './crd';
export type {
  BreakingChange,
  ConversionWebhook,
  CrdOptions,
  CustomResourceDefinitionProps,
  CustomResourceProps,
} from './crd';

// Permissions.
export {
  AccessRoles,
  LeaderElectionRole,
  OperatorRole,
  editorRules,
  leaderElectionRules,
  operatorRules,
  viewerRules,
} from './rbac';
export type {
  AccessRolesProps,
  LeaderElectionRoleProps,
  NamespacedRules,
  OperatorRoleProps,
  OperatorRulesOptions,
  PolicyRule,
  ServiceAccountRef,
  Verb,
} from './rbac';

// The operator.
export {
  InvalidPropsError,
  OperatorDeployment,
  OperatorMonitoring,
  WebhookCertificate,
  alertRules,
  operatorArgs,
} from './operator';
export type {
  AlertRule,
  AlertRulesProps,
  ConversionServing,
  IssuerRef,
  LogLevel,
  MonitoringProps,
  OperatorArgsProps,
  OperatorDeploymentProps,
  OperatorMonitoringProps,
  OperatorSettings,
  ConfigDirectoryProps,
  ScratchProps,
  WebhookCertificateProps,
} from './operator';

// Guardrails.
export { NamespaceGuardrails, defaultContainerLimits, defaultQuota } from './guardrails/namespace-guardrails';
export type {
  ContainerLimits,
  GuardrailNumbers,
  NamespaceGuardrailsProps,
  Quantities,
  Quota,
} from './guardrails/namespace-guardrails';

// The whole platform in one chart.
export { DEFAULT_NAMESPACE, Platform, provisioner } from './platform';
export type {
  CertManagerCertificates,
  GuardedNamespace,
  PlatformConversion,
  PlatformOperator,
  PlatformProps,
  ProvidedCertificate,
  ProvisionerProps,
} from './platform';

// The kinds that Kindred comes with.
export {
  Cluster,
  CronTab,
  DemoMicroService,
  Foo,
  HelloApp,
  Kubeconfig,
  MicroServiceDeploy,
  SampleResource,
  allKinds,
  kinds,
  provisionerKinds,
} from './kinds';
