import { ApiObject } from 'cdk8s';
import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import { operatorLabels } from './labels';
import { webhookServiceName } from './webhook';

const API_VERSION = 'cert-manager.io/v1';

/** Who issues certificates. Source: cert-manager's `Certificate`. */
export interface IssuerRef {
  readonly name: string;
  /** @default 'Issuer': one in the operators' namespace */
  readonly kind?: 'Issuer' | 'ClusterIssuer';
  /** @default 'cert-manager.io' */
  readonly group?: string;
}

/** What {@link WebhookCertificate} is made of. */
export interface WebhookCertificateProps {
  /** Name of the operator. */
  readonly name: string;
  readonly namespace: string;
  /** @default an authority of its own, made for this webhook */
  readonly issuerRef?: IssuerRef;
}

/**
 * The certificate of an operator's webhook, by cert-manager, whose CRDs must stand in the cluster.
 *
 * Without an issuer, it brings an authority of its own, valid for ten years: the serving certificate is renewed under it every
 * 60 days without a change of `caBundle`, so there is no moment at which the API server and the pods disagree. A certificate
 * that signs itself would have one at every renewal.
 */
export class WebhookCertificate extends Construct {
  /** The Secret that the certificate is kept in. */
  readonly secretName: string;
  /** What the CRD's annotation `cert-manager.io/inject-ca-from` has to say. */
  readonly injectCaFrom: string;

  constructor(scope: Construct, id: string, props: WebhookCertificateProps) {
    super(scope, id);
    const { name, namespace } = props;
    const service = webhookServiceName(name);
    this.secretName = `${service}-tls`;
    this.injectCaFrom = `${namespace}/${service}`;
    const issuerRef = props.issuerRef ?? this.addAuthority(props, service);
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

  private addAuthority(props: WebhookCertificateProps, service: string): IssuerRef {
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
