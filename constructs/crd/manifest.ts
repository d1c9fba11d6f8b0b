import type { AnyKind, PrinterColumn } from '../core/kind';
import type { KubeObject } from '../core/kube-object';
import type { KindVersion } from '../core/versions-definition';
import { conversionOf } from './conversion';
import type { ConversionWebhook } from './conversion';
import { rootSchema } from './root-schema';

/** The label of all that belongs to Kindred as a whole. */
export const PART_OF_LABEL = { 'app.kubernetes.io/part-of': 'kindred' } as const;

const READY: PrinterColumn = {
  name: 'Ready',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].status',
  description: 'Whether every child is applied and current.',
};

const AGE: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

/** What a CRD depends on besides its kind. */
export interface CrdOptions {
  /** Who converts between the versions of the kind. @default none; a kind of several versions needs one */
  readonly conversionWebhook?: ConversionWebhook;
}

/**
 * The CRD of a kind (`apiextensions.k8s.io/v1`): a function of the kind and, where it has several versions, of who converts them.
 *
 * @throws MissingConversionWebhookError when the kind has several versions and nobody converts them
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
          schema: { openAPIV3Schema: rootSchema(kind) },
        },
        ...(kind.versions as readonly KindVersion[]).map((version) => otherVersion(kind, version)),
      ],
    },
  };
}

function otherVersion(kind: AnyKind, version: KindVersion): Record<string, unknown> {
  const { deprecated, deprecationWarning } = version;
  return {
    name: version.version,
    served: version.served,
    storage: false,
    ...(deprecated ? { deprecated } : {}),
    ...(deprecationWarning === undefined ? {} : { deprecationWarning }),
    ...versionBody(version),
    schema: { openAPIV3Schema: rootSchema(kind, version) },
  };
}

function versionBody({ columns, scale }: Pick<AnyKind, 'columns' | 'scale'>): Record<string, unknown> {
  return {
    additionalPrinterColumns: columnsOf(columns),
    subresources: { ...(scale === undefined ? {} : { scale: { ...scale } }), status: {} },
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

/** A kind's own columns, then Ready and Age, unless the kind has its own of that name. */
function columnsOf(columns: readonly PrinterColumn[]): PrinterColumn[] {
  const own = new Set(columns.map(({ name }) => name));
  return [...columns, ...[READY, AGE].filter(({ name }) => !own.has(name))].map((column) => ({ ...column }));
}
