export { Platform } from './platform';
export type { CertManagerCertificates, PlatformConversion, ProvidedCertificate } from './platform-props';
export { DEFAULT_NAMESPACE } from './platform-props';
export type { GuardedNamespace, PlatformOperator, PlatformProps } from './platform-props';
export { provisioner } from './provisioner';
export type { ProvisionerProps } from './provisioner';
