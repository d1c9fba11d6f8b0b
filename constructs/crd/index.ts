/** CRDs and objects of kinds, as constructs. */
export { ARGO_CD_HEALTH_LUA, argoCdHealth } from './argo-cd-health';
export { breakingChanges } from './breaking-changes';
export type { BreakingChange } from './breaking-changes';
export { MissingConversionWebhookError } from './custom-resource-definition';
export type { ConversionWebhook } from './custom-resource-definition';
export { CustomResource } from './custom-resource';
export type { CustomResourceProps } from './custom-resource';
export { CustomResourceDefinition } from './custom-resource-definition';
export type { CustomResourceDefinitionProps } from './custom-resource-definition';
export { crdManifest } from './custom-resource-definition';
export type { CrdOptions } from './custom-resource-definition';
