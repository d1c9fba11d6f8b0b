import type { ConversionWebhook } from '../crd';
import type { GuardrailNumbers } from '../guardrails/namespace-guardrails';
import type { AnyKind } from '../kind/kind';
import type { Problem } from '../kube/errors';
import {
  hasMultipleVersions,
  webhookProblems,
  webhookServiceName,
  type ConversionServing,
  type IssuerRef,
  type MonitoringProps,
  type OperatorSettings,
} from '../operator';
import type { NamespacedRules } from '../rbac';

/** Props of `Platform`. */
export interface PlatformProps {
  /** Namespace of the operators. @default 'kindred-system' */
  readonly namespace?: string;
  /** Create that namespace, under the `restricted` Pod Security Standard. @default true */
  readonly createNamespace?: boolean;
  /**
   * The operators, each with the kinds that it alone runs. At least one. Use several where trust differs, for
   * example one that has SSH keys.
   */
  readonly operators: readonly PlatformOperator[];
  /** Namespaces that get a ResourceQuota and a LimitRange, by name or with numbers of their own. @default none */
  readonly guardedNamespaces?: readonly (string | GuardedNamespace)[];
  /** The namespaces that the operators are confined to; their permissions too. @default the whole cluster */
  readonly watchNamespaces?: readonly string[];
  /** Objects of the Prometheus operator, for every operator. @default none */
  readonly monitoring?: MonitoringProps;
  /**
   * The certificates with which the operators convert objects between versions. Must be set when a kind has
   * several versions, and changes nothing when none has. @default none
   */
  readonly conversion?: PlatformConversion;
}

/** One operator of a platform. */
export interface PlatformOperator extends OperatorSettings {
  /** Its name; its objects are called `kindred-<name>`. A DNS label of at most 42 characters. */
  readonly name: string;
  /**
   * Rules that its kinds' own code needs besides those for their children, by namespace: to read the Secrets
   * that specs refer to, for example. Under `'*'` those for the whole cluster, though `watchNamespaces` may
   * confine the operator.
   * @default none
   */
  readonly extraRules?: NamespacedRules;
}

/** A namespace with guardrails, and their numbers where they differ from the defaults. */
export interface GuardedNamespace extends GuardrailNumbers {
  readonly name: string;
  /** Create the namespace too. @default false: it exists already, and is managed elsewhere */
  readonly create?: boolean;
}

/** The certificates with which the operators convert between the versions of their kinds. */
export type PlatformConversion = ProvidedCertificate | CertManagerCertificates;

/** A certificate that is issued and renewed outside the platform. */
export interface ProvidedCertificate {
  /**
   * A Secret of type `kubernetes.io/tls` in the operators' namespace, for `kindred-<operator>-webhook.<namespace>.svc` of every operator
   * that runs a kind of several versions.
   */
  readonly certSecretName: string;
  /** The authorities that the API server trusts for it: PEM, in base64 as in the CRD itself. */
  readonly caBundle: string;
  /** The port of the pods, 1024 to 65535. @default 9443 */
  readonly port?: number;
}

/** Certificates by cert-manager, one per operator. It writes the authority into the CRDs as well. */
export interface CertManagerCertificates {
  readonly certManager: {
    /** @default an authority of its own for each webhook */
    readonly issuerRef?: IssuerRef;
  };
  /** The port of the pods, 1024 to 65535. @default 9443 */
  readonly port?: number;
}

/** The default namespace of a platform. */
export const DEFAULT_NAMESPACE = 'kindred-system';

/** The image of Kindred's own operator or provisioner if none is named. No registry has it: whoever installs makes it. */
export function defaultImage(program: 'operator' | 'provisioner', version: string): string {
  return `kindred-${program}:${version}`;
}

/**
 * What to do before the pods of a default image can start, since they would end in ImagePullBackOff.
 *
 * @param setting how the image is named instead: `--image=REF`
 */
export function defaultImageAdvice(program: 'operator' | 'provisioner', image: string, setting: string): string {
  const build = program === 'operator' ? 'npm run image --' : 'npm run image -- --operator=provisioner';
  return (
    `no registry has ${image}, so its pods cannot start: make the image with ${build} --push=REF and name it with ${setting}, ` +
    'or load it into the nodes and name it in the same way (docs/installing.md, "The image")'
  );
}

/** The annotation by which cert-manager finds the CRDs to write `caBundle` into. Source: its documentation of the CA injector. */
export const INJECT_CA_FROM = 'cert-manager.io/inject-ca-from';

/** The name of an operator's objects. */
export function operatorObjectName(operator: Pick<PlatformOperator, 'name'>): string {
  return `kindred-${operator.name}`;
}

/** A guarded namespace in its long form. */
export function toGuardedNamespace(guarded: string | GuardedNamespace): GuardedNamespace {
  return typeof guarded === 'string' ? { name: guarded } : guarded;
}

/** How an operator's pods serve conversions. `managed` is the Secret that cert-manager fills for it. */
export function toConversionServing(
  conversion: PlatformConversion,
  managed = 'kindred-webhook-tls',
): ConversionServing {
  const { port } = conversion;
  const certSecretName = 'certManager' in conversion ? managed : conversion.certSecretName;
  return { certSecretName, ...(port === undefined ? {} : { port }) };
}

/** The conversion webhook in a kind's CRD; undefined for a kind of one version. */
export function conversionWebhookFor(
  kind: AnyKind,
  operatorName: string,
  namespace: string,
  conversion: PlatformConversion | undefined,
): ConversionWebhook | undefined {
  if (!hasMultipleVersions(kind) || conversion === undefined) return undefined;
  const caBundle = 'certManager' in conversion ? {} : { caBundle: conversion.caBundle.replace(/\s/g, '') };
  return { service: { name: webhookServiceName(operatorName), namespace }, ...caBundle };
}

/** All that is wrong with the settings by which a platform converts its kinds. */
export function conversionProblems(
  operators: readonly PlatformOperator[],
  conversion: PlatformConversion | undefined,
): readonly Problem[] {
  const kinds = operators.flatMap((operator) => operator.kinds).filter(hasMultipleVersions);
  if (kinds.length === 0) return [];
  if (conversion === undefined) {
    const names = [...new Set(kinds.map(({ crdName }) => crdName))].join(', ');
    const message =
      `an operator has to convert between the versions of ${names}, and needs a certificate to serve that: ` +
      'set { certManager: {} }, or { certSecretName, caBundle } for one of your own';
    return [{ path: 'conversion', message }];
  }
  const serving = toConversionServing(conversion);
  const first = operators.map((operator) => webhookProblems({ ...operator, conversion: serving }));
  return [...(first.find((problems) => problems.length > 0) ?? []), ...caBundleProblems(conversion)];
}

function caBundleProblems(conversion: PlatformConversion): readonly Problem[] {
  if ('certManager' in conversion) return [];
  const { caBundle } = conversion;
  const path = 'conversion.caBundle';
  if (caBundle.includes('-----BEGIN'))
    return [{ path, message: 'it is PEM: encode the whole of it in base64 once more' }];
  if (/^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(caBundle)) return [];
  return [{ path, message: 'it must be PEM certificates, encoded in base64' }];
}
