import { ApiObject } from 'cdk8s';
import type { Construct } from 'constructs';
import type { AnyKind } from '../core/kind';
import { keepNulls } from './keep-nulls';
import { crdManifest } from './manifest';
import type { CrdOptions } from './manifest';

/** Props of {@link CustomResourceDefinition}. */
export interface CustomResourceDefinitionProps extends CrdOptions {
  /** The kind to define in the cluster. */
  readonly kind: AnyKind;
}

/**
 * The CRD of a kind.
 *
 * Guarantees: the manifest follows from the kind and `conversionWebhook`, apart from labels that the chart adds to all it holds; it
 * bears no namespace.
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
    return { ...json, metadata, spec: keepNulls(json.spec, crdManifest(this.definition.kind, this.definition).spec) };
  }
}

interface Manifest {
  readonly metadata: { namespace?: string };
  readonly spec: unknown;
}
