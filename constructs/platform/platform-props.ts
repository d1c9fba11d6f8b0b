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

/** One operator of a platform. */
export interface PlatformOperator extends OperatorSettings {
  /** Its name; its objects are called `kindred-<name>`. A DNS label of at most 42 characters. */
  readonly name: string;
  /**
   * What its kinds' own code needs besides their children, by namespace: reading the Secrets that specs refer to, for example.
   * @default none
   */
  readonly extraRules?: NamespacedRules;
}

/** A namespace with guardrails, and their numbers where they differ from the defaults. */
export interface GuardedNamespace extends GuardrailNumbers {
  readonly name: string;
  /** Create the namespace too. @default false: it stands already, and belongs to somebody else */
  readonly create?: boolean;
}

/** What a {@link Platform} is made of. */
export interface PlatformProps {
  /** Namespace of the operators. @default 'kindred-system' */
  readonly namespace?: string;
  /** Create that namespace, under the `restricted` Pod Security Standard. @default true */
  readonly createNamespace?: boolean;
  /**
   * The operators, each with the kinds that it alone runs. One will do; more where trust differs, such as one that holds SSH keys.
   * At least one.
   */
  readonly operators: readonly PlatformOperator[];
  /** Namespaces that get a ResourceQuota and a LimitRange, by name or with numbers of their own. @default none */
  readonly guardedNamespaces?: readonly (string | GuardedNamespace)[];
  /** The namespaces that the operators are confined to; their permissions too. @default the whole cluster */
  readonly watchNamespaces?: readonly string[];
  /** Objects of the Prometheus operator, for every operator. @default none */
  readonly monitoring?: MonitoringProps;
  /**
   * With which certificates the operators convert objects between versions. Must be set when a kind has several versions, and changes
   * nothing when none has. @default none
   */
  readonly conversion?: PlatformConversion;
}

/** Where a platform goes unless it is told otherwise. */
export const DEFAULT_NAMESPACE = 'kindred-system';

/** The name of an operator's objects. */
export function operatorObjectName(operator: Pick<PlatformOperator, 'name'>): string {
  return `kindred-${operator.name}`;
}

/** A guarded namespace with its numbers, however it was written. */
export function toGuardedNamespace(guarded: string | GuardedNamespace): GuardedNamespace {
  return typeof guarded === 'string' ? { name: guarded } : guarded;
}

/** A certificate that somebody else issues and renews. */
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

/** Certificates by cert-manager, one an operator; it writes the authority into the CRDs as well. */
export interface CertManagerCertificates {
  readonly certManager: {
    /** @default an authority for each webhook, made for it */
    readonly issuerRef?: IssuerRef;
  };
  /** The port of the pods, 1024 to 65535. @default 9443 */
  readonly port?: number;
}

/** With which certificates the operators convert between the versions of their kinds. */
export type PlatformConversion = ProvidedCertificate | CertManagerCertificates;

/** The annotation by which cert-manager finds the CRDs to write `caBundle` into. Source: its documentation of the CA injector. */
export const INJECT_CA_FROM = 'cert-manager.io/inject-ca-from';

/** All that is wrong with how the kinds of a platform are converted. */
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

/** What an operator's pods serve with; `managed` is the Secret that cert-manager fills for it. */
export function toConversionServing(
  conversion: PlatformConversion,
  managed = 'kindred-webhook-tls',
): ConversionServing {
  const { port } = conversion;
  const certSecretName = 'certManager' in conversion ? managed : conversion.certSecretName;
  return { certSecretName, ...(port === undefined ? {} : { port }) };
}

/** What a kind's CRD says of its operator's webhook; undefined for a kind of one version. */
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
