export {
  ConstructResources,
  KubernetesObject,
  mutableContent,
  typeToken,
  type ConstructResourcesArgs,
  type ServerMetadata,
} from './construct-resources';
export { resourceOptions, type AwaitOptions, type BridgeOptions } from './options';
export { containsToken, isDeferred, outputs, type TokenOptions } from './tokens';
export {
  addChild,
  addKindChildren,
  assertNoEffects,
  KindResource,
  WITH_TOKENS,
  type KindChildrenOptions,
  type KindResourceProps,
} from './kind-resource';
export { pathsOverlap, propertyPath, type PathStep } from './manifest';
export { BridgeError } from './render-tree';
