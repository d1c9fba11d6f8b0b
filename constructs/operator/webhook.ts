import type { k8s } from 'cdk8s-plus-27';
import type { AnyKind } from '../core/kind';

/** How an operator serves the conversions of its kinds. */
export interface ConversionServing {
  /**
   * A Secret of type `kubernetes.io/tls` in the operator's namespace, with `tls.crt` for `<service>.<namespace>.svc` and `tls.key`. The pods
   * wait for it; what is put into it later is served within two minutes.
   */
  readonly certSecretName: string;
  /** The port of the pods, 1024 to 65535; some clouds let control planes reach few. @default 9443 */
  readonly port?: number;
}

/** Name of the port of `/convert`. */
export const WEBHOOK_PORT_NAME = 'webhook';

/** The port that `/convert` is served at unless told otherwise. */
export const DEFAULT_WEBHOOK_PORT = 9443;

/** Where the pods find the certificate. */
const CERT_DIR = '/etc/kindred/webhook-tls';

const VOLUME = 'webhook-tls';

/** The props of an operator that its webhook follows from. */
export interface WebhookProps {
  readonly kinds: readonly AnyKind[];
  readonly conversion?: ConversionServing;
  readonly metricsPort?: number;
}

/** How an operator serves conversions; undefined when all its kinds have one version: then there is nothing to serve. */
export function servingOf({ kinds, conversion }: WebhookProps): Required<ConversionServing> | undefined {
  if (conversion === undefined || !kinds.some(hasVersions)) return undefined;
  return { ...conversion, port: conversion.port ?? DEFAULT_WEBHOOK_PORT };
}

/** Whether somebody must convert a kind's objects. */
export function hasVersions(kind: AnyKind): boolean {
  return kind.versions.length > 0;
}

/** The Service in front of an operator's webhook. */
export function webhookServiceName(name: string): string {
  return `${name}-webhook`;
}

/** The arguments of `kindred-operator` that serve conversions. */
export function webhookArgs(props: WebhookProps): readonly string[] {
  const serving = servingOf(props);
  return serving === undefined ? [] : [`--webhook-port=${serving.port}`, `--webhook-cert-dir=${CERT_DIR}`];
}

/** What a pod has besides, so that its container can serve conversions. */
export interface WebhookPod {
  readonly ports: readonly k8s.ContainerPort[];
  readonly volumeMounts: readonly k8s.VolumeMount[];
  readonly volumes: readonly k8s.Volume[];
}

/**
 * The container's port, and the Secret as a volume. As a whole and not by `subPath`, because that would never be updated; not optional,
 * so that no container starts without a certificate.
 */
export function webhookPod(props: WebhookProps): WebhookPod {
  const serving = servingOf(props);
  if (serving === undefined) return { ports: [], volumeMounts: [], volumes: [] };
  return {
    ports: [{ name: WEBHOOK_PORT_NAME, containerPort: serving.port, protocol: 'TCP' }],
    volumeMounts: [{ name: VOLUME, mountPath: CERT_DIR, readOnly: true }],
    // 0440 and the pod's fsGroup: for the container's user, and nobody else.
    volumes: [{ name: VOLUME, secret: { secretName: serving.certSecretName, defaultMode: 0o440 } }],
  };
}
