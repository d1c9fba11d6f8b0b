/**
 * Fields that a kind's spec is made of: zod schemas that carry what Kubernetes knows of them (`x-kubernetes-*`) into the CRD, and
 * refuse in zod what the API server refuses. `.optional()`, `.default()`, `.describe()` and `.meta()` keep working on them.
 */
export { dns1035Label, dnsLabel, dnsSubdomain, intOrString } from './fields-strings';
export { immutable, withRule } from './fields-rules';
export { atomicList, listMap, listSet, mapOf, stringMap } from './fields-collections';
export type { ListLimits, StringMapLimits } from './fields-collections';
export { anyValue, embeddedResource, preserveUnknownFields } from './fields-objects';
export { quantity } from './quantity';
