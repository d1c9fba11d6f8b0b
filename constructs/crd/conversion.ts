import type { AnyKind } from '../core/kind';

/** Where the API server finds the webhook that converts a kind's objects between versions. */
export interface ConversionWebhook {
  /** The Service in front of it. */
  readonly service: {
    readonly name: string;
    readonly namespace: string;
    /** @default '/convert' */
    readonly path?: string;
    /** @default 443 */
    readonly port?: number;
  };
  /**
   * The certificate authority of the webhook's certificate, PEM in base64 as in the CRD itself.
   * @default somebody else fills it in, as cert-manager does where the kind's `crdAnnotations` say `cert-manager.io/inject-ca-from`
   */
  readonly caBundle?: string;
}

/** A kind has several versions, and nothing is said of who converts between them. */
export class MissingConversionWebhookError extends Error {
  override readonly name = 'MissingConversionWebhookError';
  constructor(readonly kind: AnyKind) {
    const versions = [kind, ...kind.versions].map(({ version }) => version).join(', ');
    super(
      `the CRD of ${kind.kind} has the versions ${versions}: the server cannot convert between them by itself ` +
        '(strategy None only changes the apiVersion, and drops what the other schema does not know); set conversionWebhook',
    );
  }
}

/**
 * The `spec.conversion` of a kind's CRD; none for a kind of one version.
 *
 * @throws MissingConversionWebhookError when the kind has several versions and `webhook` is absent
 */
export function conversionOf(kind: AnyKind, webhook: ConversionWebhook | undefined): Record<string, unknown> {
  if (kind.versions.length === 0) return {};
  if (webhook === undefined) throw new MissingConversionWebhookError(kind);
  const { name, namespace, path = '/convert', port = 443 } = webhook.service;
  const caBundle = webhook.caBundle === undefined ? {} : { caBundle: webhook.caBundle };
  return {
    conversion: {
      strategy: 'Webhook',
      webhook: {
        clientConfig: { ...caBundle, service: { name, namespace, path, port } },
        conversionReviewVersions: ['v1'],
      },
    },
  };
}
