/** CRDs and objects of kinds, as constructs. */
export { ARGO_CD_HEALTH_LUA, argoCdHealth } from './argo-cd-health';
export { breakingChanges, type BreakingChange } from './breaking-changes';
export {
  crdManifest,
  CustomResourceDefinition,
  MissingConversionWebhookError,
  type ConversionWebhook,
  type CrdOptions,
  type CustomResourceDefinitionProps,
} from './custom-resource-definition';
export { CustomResource, type CustomResourceProps } from './custom-resource';
