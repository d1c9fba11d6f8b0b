/** What Kindred offers to stack authors and kind authors. Everything else is internal. */

// Defining kinds.
export { cel } from './core/cel';
export type { CelRule } from './core/cel';
export type { Effect, EffectPhase, InputReader } from './core/effects';
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
} from './core/fields';
export type { ListLimits, StringMapLimits } from './core/fields';
export { defineKind } from './core/kind';
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
} from './core/kind';
export type { Condition, Json, JsonObject, KubeObject, ObjectMeta, OwnerReference } from './core/kube-object';
export type { NameFormat, NameRule } from './core/names';
export { owned } from './core/owned';
export type { CronJobObject, WorkloadObject } from './core/owned';
export type { Finalizer, Seed, SharedChildren } from './core/ownership';
export { compareQuantities, isQuantity } from './core/quantity';
export type { ObjectKeyRef, ObjectRef, Read } from './core/reads';
export type { ResourceScope, ResourceType } from './core/resource-type';
export type { StructuralSchema } from './core/structural-schema';

// What stands on objects.
export { ADOPT_ANNOTATION, PAUSED_ANNOTATION, RECONCILE_AT_ANNOTATION } from './core/envelope';

// Rendering and checking objects.
export { ConversionError, InvalidObjectError, KindDefinitionError, RenderError } from './core/errors';
export type { Problem } from './core/errors';
export { renderChildren, renderShared } from './core/render';
export type { ActiveSeed, RenderedChild } from './core/render';
export { validateObject } from './core/validate';

// Versions.
export { CONVERSION_ANNOTATION, convertObject } from './core/versions';
export type { KindVersion, OtherVersion, OtherVersions } from './core/versions-definition';

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
export { NamespaceGuardrails, defaultContainerLimits, defaultQuota } from './guardrails';
export type { ContainerLimits, GuardrailNumbers, NamespaceGuardrailsProps, Quantities, Quota } from './guardrails';

// All of it.
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

// What is done on the machines of a cluster.
export {
  NoAnswerError,
  clusterInput,
  clusterProblems,
  clusterTasks,
  commandLine,
  kubeconfigOf,
  leavesOf,
  outputText,
  parseAnswer,
  renderSource,
  stdinText,
} from './provision';
export type {
  Answer,
  ClusterInput,
  InstallerSource,
  K3sInput,
  LeafSource,
  LoginOptions,
  Machine,
  NamedValue,
  Node,
  NodeRole,
  OutputRef,
  Rke2Input,
  RkeInput,
  Source,
  StdinValue,
  Task,
  TypedClusterSpec,
} from './provision';

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
