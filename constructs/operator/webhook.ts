/**
 * The conversion webhook of an operator: its arguments, port, volume and Service, and its certificate from
 * cert-manager.
 */
import { ApiObject, type ApiObjectMetadata } from 'cdk8s';
import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import type { AnyKind } from '../kind/kind';
import { operatorLabels, operatorSelector } from './labels';

/** How an operator serves the conversions of its kinds. */
export interface ConversionServing {
  /**
   * A Secret of type `kubernetes.io/tls` in the operator's namespace, with `tls.crt` for
   * `<service>.<namespace>.svc` and `tls.key`. The pods wait until it exists; a new certificate in it is
   * served within two minutes.
   */
  readonly certSecretName: string;
  /** The port of the pods, 1024 to 65535; some clouds let control planes reach few ports. @default 9443 */
  readonly port?: number;
}

/** The props of an operator that its webhook is derived from. */
export interface WebhookProps {
  readonly kinds: readonly AnyKind[];
  readonly conversion?: ConversionServing;
  readonly metricsPort?: number;
}

/**
 * How an operator serves conversions; undefined when all its kinds have one version, so that none are needed.
 */
export function resolveConversionServing({ kinds, conversion }: WebhookProps): Required<ConversionServing> | undefined {
  if (conversion === undefined || !kinds.some(hasMultipleVersions)) return undefined;
  return { ...conversion, port: conversion.port ?? DEFAULT_WEBHOOK_PORT };
}

/** Whether a kind's objects need conversion between versions. */
export function hasMultipleVersions(kind: AnyKind): boolean {
  return kind.versions.length > 0;
}

/** The name of the Service in front of an operator's webhook. */
export function webhookServiceName(name: string): string {
  return `${name}-webhook`;
}

/** Name of the port of `/convert`. */
const WEBHOOK_PORT_NAME = 'webhook';

/** The default port of `/convert`. */
export const DEFAULT_WEBHOOK_PORT = 9443;

/** Where the pods find the certificate. */
const CERT_DIR = '/etc/kindred/webhook-tls';

const VOLUME = 'webhook-tls';

/** The arguments of `kindred-operator` that serve conversions. */
export function webhookArgs(props: WebhookProps): readonly string[] {
  const serving = resolveConversionServing(props);
  return serving === undefined ? [] : [`--webhook-port=${serving.port}`, `--webhook-cert-dir=${CERT_DIR}`];
}

/** What a pod needs in addition to serve conversions. */
interface WebhookPodParts {
  readonly ports: readonly k8s.ContainerPort[];
  readonly volumeMounts: readonly k8s.VolumeMount[];
  readonly volumes: readonly k8s.Volume[];
}

/**
 * The container's port, and the Secret as a volume. It is mounted as a whole, because a `subPath` is never
 * updated, and is not optional, so that no container starts without a certificate.
 */
export function webhookPodParts(props: WebhookProps): WebhookPodParts {
  const serving = resolveConversionServing(props);
  if (serving === undefined) return { ports: [], volumeMounts: [], volumes: [] };
  return {
    ports: [{ name: WEBHOOK_PORT_NAME, containerPort: serving.port, protocol: 'TCP' }],
    volumeMounts: [{ name: VOLUME, mountPath: CERT_DIR, readOnly: true }],
    // 0440 and the pod's fsGroup: only the container's user can read it.
    volumes: [{ name: VOLUME, secret: { secretName: serving.certSecretName, defaultMode: 0o440 } }],
  };
}

/**
 * Adds the Service by which the API server reaches the webhook. It leads to pods that are ready, and so to none that is stopping:
 * with `publishNotReadyAddresses` it would lead there until the pod is gone. Source: `podToEndpoint` of k8s.io/endpointslice.
 */
export function addWebhookService(scope: Construct, name: string, metadata: k8s.ObjectMeta): void {
  new k8s.KubeService(scope, 'webhook-service', {
    metadata: { ...metadata, name: webhookServiceName(name) },
    spec: {
      type: 'ClusterIP',
      selector: operatorSelector(name),
      ports: [
        {
          name: WEBHOOK_PORT_NAME,
          port: 443,
          targetPort: k8s.IntOrString.fromString(WEBHOOK_PORT_NAME),
          protocol: 'TCP',
        },
      ],
    },
  });
}

/** Allows every source to reach the webhook, since the address of the API server is not known here. */
export function webhookIngress(): k8s.NetworkPolicyIngressRule {
  return { ports: [{ port: k8s.IntOrString.fromString(WEBHOOK_PORT_NAME), protocol: 'TCP' }] };
}

/** The issuer of a certificate. Source: cert-manager's `Certificate`. */
export interface IssuerRef {
  readonly name: string;
  /** @default 'Issuer': one in the operators' namespace */
  readonly kind?: 'Issuer' | 'ClusterIssuer';
  /** @default 'cert-manager.io' */
  readonly group?: string;
}

/** Props of {@link WebhookCertificate}. */
export interface WebhookCertificateProps {
  /** Name of the operator. */
  readonly name: string;
  readonly namespace: string;
  /** @default an authority of its own, created for this webhook */
  readonly issuerRef?: IssuerRef;
}

const API_VERSION = 'cert-manager.io/v1';

/**
 * The certificate of an operator's webhook, by cert-manager, whose CRDs must be installed in the cluster.
 *
 * Without an issuer, it creates an authority of its own, valid for ten years. That authority renews the
 * serving certificate every 60 days without a change of `caBundle`, so the API server and the pods never
 * disagree. With a self-signed certificate they would, at every renewal.
 */
export class WebhookCertificate extends Construct {
  /** The Secret with the certificate. */
  readonly secretName: string;
  /** The value of the CRD's annotation `cert-manager.io/inject-ca-from`. */
  readonly injectCaFrom: string;

  constructor(scope: Construct, id: string, props: WebhookCertificateProps) {
    super(scope, id);
    const { name, namespace } = props;
    const service = webhookServiceName(name);
    this.secretName = `${service}-tls`;
    this.injectCaFrom = `${namespace}/${service}`;
    const issuerRef = props.issuerRef ?? this.addCaIssuer(props, service);
    new ApiObject(this, 'certificate', {
      apiVersion: API_VERSION,
      kind: 'Certificate',
      metadata: metadataOf(props, service),
      spec: {
        secretName: this.secretName,
        dnsNames: [`${service}.${namespace}.svc`, `${service}.${namespace}.svc.cluster.local`],
        usages: ['digital signature', 'server auth'],
        privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
        issuerRef: { group: 'cert-manager.io', kind: 'Issuer', ...issuerRef },
      },
    });
  }

  private addCaIssuer(props: WebhookCertificateProps, service: string): IssuerRef {
    const [selfSigned, authority] = [`${service}-self-signed`, `${service}-ca`];
    const issuer = (id: string, name: string, spec: object): void => {
      new ApiObject(this, id, { apiVersion: API_VERSION, kind: 'Issuer', metadata: metadataOf(props, name), spec });
    };
    issuer('self-signed', selfSigned, { selfSigned: {} });
    new ApiObject(this, 'authority', {
      apiVersion: API_VERSION,
      kind: 'Certificate',
      metadata: metadataOf(props, authority),
      spec: {
        isCA: true,
        commonName: authority,
        secretName: authority,
        duration: '87600h',
        privateKey: { algorithm: 'ECDSA', size: 256 },
        issuerRef: { group: 'cert-manager.io', kind: 'Issuer', name: selfSigned },
      },
    });
    issuer('issuer', authority, { ca: { secretName: authority } });
    return { name: authority };
  }
}

function metadataOf({ name: operator, namespace }: WebhookCertificateProps, name: string): ApiObjectMetadata {
  return { name, namespace, labels: { ...operatorLabels(operator) } };
}
