import { ApiObject } from 'cdk8s';
import type { Construct } from 'constructs';
import type { AnyKind, PrinterColumn } from '../kind/kind';
import type { KindVersion } from '../kind/versions';
import type { KubeObject } from '../kube/kube-object';
import { restoreNulls } from './custom-resource';
import { openApiV3Schema } from './openapi-schema';

/** Props of {@link CustomResourceDefinition}. */
export interface CustomResourceDefinitionProps extends CrdOptions {
  /** The kind to define in the cluster. */
  readonly kind: AnyKind;
}

/** What a CRD depends on besides its kind. */
export interface CrdOptions {
  /** The webhook that converts between the versions. @default none; a kind of several versions needs one */
  readonly conversionWebhook?: ConversionWebhook;
}

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
   * @default another controller fills it in, as cert-manager does if the kind's `crdAnnotations` have
   * `cert-manager.io/inject-ca-from`
   */
  readonly caBundle?: string;
}

/**
 * The CRD of a kind.
 *
 * Guarantees: the manifest is a function of the kind and `conversionWebhook`, apart from labels that the
 * chart adds to all its objects; it has no namespace.
 *
 * Errors: MissingConversionWebhookError for a kind of several versions without `conversionWebhook`.
 */
export class CustomResourceDefinition extends ApiObject {
  constructor(
    scope: Construct,
    id: string,
    private readonly definition: CustomResourceDefinitionProps,
  ) {
    const { apiVersion, kind, metadata, spec } = crdManifest(definition.kind, definition);
    const { name, labels, annotations } = metadata;
    super(scope, id, {
      apiVersion,
      kind,
      metadata: {
        name,
        labels: { ...labels },
        ...(annotations === undefined ? {} : { annotations: { ...annotations } }),
      },
      spec,
    });
  }

  /** The manifest, nulls in defaults included. */
  // oxlint-disable-next-line typescript/no-explicit-any -- cdk8s declares it so
  override toJson(): any {
    const json = super.toJson() as Manifest;
    const metadata = { ...json.metadata };
    delete metadata.namespace;
    return {
      ...json,
      metadata,
      spec: restoreNulls(json.spec, crdManifest(this.definition.kind, this.definition).spec),
    };
  }
}

interface Manifest {
  readonly metadata: { namespace?: string };
  readonly spec: unknown;
}

/**
 * The CRD of a kind (`apiextensions.k8s.io/v1`): a function of the kind and, if it has several versions, of
 * their conversion webhook.
 *
 * @throws MissingConversionWebhookError when the kind has several versions and no conversion webhook is given
 */
export function crdManifest(kind: AnyKind, options: CrdOptions = {}): KubeObject {
  const { crdAnnotations } = kind;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: kind.crdName,
      ...(crdAnnotations === undefined ? {} : { annotations: { ...crdAnnotations } }),
      labels: { ...PART_OF_LABEL },
    },
    spec: {
      ...conversionOf(kind, options.conversionWebhook),
      group: kind.group,
      names: namesOf(kind),
      scope: kind.scope,
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          ...versionBody(kind),
          schema: { openAPIV3Schema: openApiV3Schema(kind) },
        },
        ...(kind.versions as readonly KindVersion[]).map((version) => crdVersion(kind, version)),
      ],
    },
  };
}

/** A kind has several versions, and no webhook converts between them. */
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

/** The label of everything that is part of Kindred. */
const PART_OF_LABEL = { 'app.kubernetes.io/part-of': 'kindred' } as const;

const READY: PrinterColumn = {
  name: 'Ready',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].status',
  description: 'Whether every child is applied and current.',
};

const AGE: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

/**
 * The `spec.conversion` of a kind's CRD; none for a kind of one version.
 *
 * @throws MissingConversionWebhookError when the kind has several versions and `webhook` is absent
 */
function conversionOf(kind: AnyKind, webhook: ConversionWebhook | undefined): Record<string, unknown> {
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

function namesOf({ kind, plural, singular, shortNames, categories }: AnyKind): Record<string, unknown> {
  return {
    categories: [...categories],
    kind,
    listKind: `${kind}List`,
    plural,
    ...(shortNames.length === 0 ? {} : { shortNames: [...shortNames] }),
    singular,
  };
}

function versionBody({ columns, scale }: Pick<AnyKind, 'columns' | 'scale'>): Record<string, unknown> {
  return {
    additionalPrinterColumns: columnsOf(columns),
    subresources: { ...(scale === undefined ? {} : { scale: { ...scale } }), status: {} },
  };
}

/** A kind's own columns, then Ready and Age, unless the kind has its own of that name. */
function columnsOf(columns: readonly PrinterColumn[]): PrinterColumn[] {
  const own = new Set(columns.map(({ name }) => name));
  return [...columns, ...[READY, AGE].filter(({ name }) => !own.has(name))].map((column) => ({ ...column }));
}

function crdVersion(kind: AnyKind, version: KindVersion): Record<string, unknown> {
  const { deprecated, deprecationWarning } = version;
  return {
    name: version.version,
    served: version.served,
    storage: false,
    ...(deprecated ? { deprecated } : {}),
    ...(deprecationWarning === undefined ? {} : { deprecationWarning }),
    ...versionBody(version),
    schema: { openAPIV3Schema: openApiV3Schema(kind, version) },
  };
}
