export { LIMIT_RANGE_NAME, NamespaceGuardrails, RESOURCE_QUOTA_NAME } from './namespace-guardrails';
export type { NamespaceGuardrailsProps } from './namespace-guardrails';
export { defaultContainerLimits, defaultQuota, guardrailProblems } from './numbers';
export type { ContainerLimits, GuardrailNumbers, Quantities, Quota } from './numbers';
