import { ApiObject, type ApiObjectMetadata } from 'cdk8s';
import type { Construct } from 'constructs';
import type { AnyKind, KindSpec } from '../kind/kind';
import { validateObject } from '../kind/validate';
import { isObject, type KubeObject } from '../kube/kube-object';

/** Props of {@link CustomResource}. */
export type CustomResourceProps<K extends AnyKind> = {
  /** The kind of the object. */
  readonly kind: K;
  /** @default a name that cdk8s derives from the construct's path */
  readonly metadata?: ApiObjectMetadata;
} & SpecProps<KindSpec<K>>;

/** A spec may be left out where nothing in it is required. */
type SpecProps<S> = Partial<S> extends S ? { readonly spec?: S } : { readonly spec: S };

/**
 * An object of a kind.
 *
 * Guarantees: the spec is emitted as it was written, since the server applies defaults; an object of a
 * cluster-scoped kind has no namespace.
 *
 * Errors: InvalidObjectError, from the constructor and again at synth (after JSON patches), when the name or
 * the spec does not fit the kind, or the spec has fields that the kind does not know.
 */
export class CustomResource<K extends AnyKind = AnyKind> extends ApiObject {
  private readonly definition: AnyKind;
  private readonly originalSpec: unknown;

  constructor(scope: Construct, id: string, props: CustomResourceProps<K>) {
    const { metadata, spec } = props as { metadata?: ApiObjectMetadata; spec?: unknown };
    const { apiVersion, kind }: AnyKind = props.kind;
    super(scope, id, { apiVersion, kind, metadata, ...(spec === undefined ? {} : { spec }) });
    this.definition = props.kind;
    this.originalSpec = spec;
    // Here too and not only at synth, so that the stack trace leads to the code that creates the object.
    const namespace = metadata?.namespace ?? this.chart.namespace;
    validateObject(this.definition, {
      apiVersion,
      kind,
      metadata: { name: this.name, ...(namespace === undefined || this.isClusterScoped ? {} : { namespace }) },
      ...(spec === undefined ? {} : { spec }),
    });
  }

  private get isClusterScoped(): boolean {
    return this.definition.scope === 'Cluster';
  }

  /** The manifest, nulls in the spec included. @throws InvalidObjectError when a JSON patch made it invalid */
  // oxlint-disable-next-line typescript/no-explicit-any -- cdk8s declares it so
  override toJson(): any {
    const json = super.toJson() as KubeObject;
    const { namespace, ...metadata } = json.metadata;
    const object: KubeObject = {
      ...json,
      metadata: namespace === undefined || this.isClusterScoped ? metadata : { ...metadata, namespace },
      ...(json.spec === undefined ? {} : { spec: restoreNulls(json.spec, this.originalSpec) }),
    };
    validateObject(this.definition, object);
    return object;
  }
}

/**
 * A value as `synthesized`, with the nulls of `written` put back: cdk8s drops them, and a nullable field may
 * be null. What was removed or changed since is left as it is.
 */
export function restoreNulls(synthesized: unknown, written: unknown): unknown {
  if (written === null) return synthesized ?? null;
  if (Array.isArray(written) && Array.isArray(synthesized)) {
    const items: readonly unknown[] = written;
    return synthesized.map((item: unknown, i) => (i < items.length ? restoreNulls(item, items[i]) : item));
  }
  if (!isObject(written) || !isObject(synthesized)) return synthesized;
  const result: Record<string, unknown> = { ...synthesized };
  for (const [key, value] of Object.entries(written)) {
    if (value === null || key in result) result[key] = restoreNulls(result[key], value);
  }
  return Object.fromEntries(Object.entries(result).sort(([a], [b]) => (a < b ? -1 : 1)));
}
