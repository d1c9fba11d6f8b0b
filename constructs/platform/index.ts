export { guardedNamespaceProblems, Platform } from './platform';
export {
  DEFAULT_NAMESPACE,
  defaultImage,
  defaultImageAdvice,
  type CertManagerCertificates,
  type GuardedNamespace,
  type PlatformConversion,
  type PlatformOperator,
  type PlatformProps,
  type ProvidedCertificate,
} from './platform-props';
export { provisioner, type ProvisionerProps } from './provisioner';
