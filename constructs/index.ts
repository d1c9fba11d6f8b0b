/** The public API for stack authors and kind authors. Everything else in constructs/ is internal. */

// Defining kinds.
export { own, type ChildPolicy } from './kind/child-policy';
export { cel, type CelRule } from './kind/schema/cel';
export type { Effect, EffectPhase, EffectRun, InputReader } from './kind/effects';
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
  type ListLimits,
  type StringMapLimits,
} from './kind/fields';
export {
  defineKind,
  type AnyKind,
  type CommonStatus,
  type ConditionType,
  type Kind,
  type KindObject,
  type KindProps,
  type KindSpec,
  type Observation,
  type ObservedChildren,
  type PrinterColumn,
  type Reason,
  type ReportedCondition,
  type Sample,
  type ScaleSubresource,
  type TypedObject,
} from './kind/kind';
export type { Condition, Json, JsonObject, KubeObject, ObjectMeta, OwnerReference } from './kube/kube-object';
export type { NameFormat, NameRule } from './kube/names';
export {
  owned,
  type CronJobObject,
  type ResourceScope,
  type ResourceType,
  type WorkloadObject,
} from './kube/resource-type';
export type { Finalizer, Seed, SharedChildren } from './kind/kind-props';
export { compareQuantities, isQuantity } from './kind/quantity';
export type { ObjectKeyRef, ObjectRef, Read } from './kind/reads';
export type { StructuralSchema } from './kind/schema/structural-schema';

// Annotations that users set on objects.
export { ADOPT_ANNOTATION, PAUSED_ANNOTATION, RECONCILE_AT_ANNOTATION } from './kube/envelope';

// Rendering and checking objects.
export { ConversionError, InvalidObjectError, KindDefinitionError, RenderError, type Problem } from './kube/errors';
export { renderChildren, renderShared, type ActiveSeed, type RenderedChild, type RenderOptions } from './kind/render';
export { KindFunctionError } from './kube/function-error';
export { validateObject } from './kind/validate';

// Versions.
export { CONVERSION_ANNOTATION, convertObject } from './kind/conversion';
export type { KindVersion, OtherVersion, OtherVersions } from './kind/versions';

// CRDs and objects.
export {
  ARGO_CD_HEALTH_LUA,
  argoCdHealth,
  breakingChanges,
  crdManifest,
  CustomResource,
  CustomResourceDefinition,
  MissingConversionWebhookError,
  type BreakingChange,
  type ConversionWebhook,
  type CrdOptions,
  type CustomResourceDefinitionProps,
  type CustomResourceProps,
} from './crd';

// Permissions.
export {
  AccessRoles,
  editorRules,
  LeaderElectionRole,
  leaderElectionRules,
  OperatorRole,
  operatorRules,
  viewerRules,
  type AccessRolesProps,
  type LeaderElectionRoleProps,
  type KindRule,
  type NamespacedRules,
  type OperatorRoleProps,
  type OperatorRulesOptions,
  type PolicyRule,
  type ServiceAccountRef,
  type Verb,
} from './rbac';

// The operator.
export {
  alertRules,
  InvalidPropsError,
  operatorArgs,
  OperatorDeployment,
  OperatorMonitoring,
  WebhookCertificate,
  type AlertRule,
  type AlertRulesProps,
  type ConfigDirectoryProps,
  type ConversionServing,
  type IssuerRef,
  type LogLevel,
  type MonitoringProps,
  type OperatorArgsProps,
  type OperatorDeploymentProps,
  type OperatorMonitoringProps,
  type OperatorSettings,
  type ScratchProps,
  type WebhookCertificateProps,
} from './operator';

// Guardrails.
export {
  defaultContainerLimits,
  defaultQuota,
  NamespaceGuardrails,
  type ContainerLimits,
  type GuardrailNumbers,
  type NamespaceGuardrailsProps,
  type Quantities,
  type Quota,
} from './guardrails/namespace-guardrails';

// The whole platform in one chart.
export {
  DEFAULT_NAMESPACE,
  Platform,
  provisioner,
  type CertManagerCertificates,
  type GuardedNamespace,
  type PlatformConversion,
  type PlatformOperator,
  type PlatformProps,
  type ProvidedCertificate,
  type ProvisionerProps,
} from './platform';

// The kinds that Kindred comes with.
export {
  allKinds,
  Cluster,
  CronTab,
  DemoMicroService,
  Foo,
  HelloApp,
  kinds,
  Kubeconfig,
  MicroServiceDeploy,
  provisionerKinds,
  SampleResource,
} from './kinds';
