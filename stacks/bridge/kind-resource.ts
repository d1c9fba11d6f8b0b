import type * as pulumi from '@pulumi/pulumi';
import { ApiObject, type ApiObjectMetadata } from 'cdk8s';
import type { Construct } from 'constructs';
import { restoreNulls } from '../../constructs/crd/custom-resource';
import type { AnyKind, KindSpec } from '../../constructs/kind/kind';
import {
  renderChildren,
  renderShared,
  sharedKeys,
  withDefaults,
  type RenderedChild,
  type RenderOptions,
} from '../../constructs/kind/render';
import { describeObject, objectProblems } from '../../constructs/kind/validate';
import { InvalidObjectError } from '../../constructs/kube/errors';
import { isObject, type KubeObject } from '../../constructs/kube/kube-object';
import { pathsOverlap, propertyPath, withMetadata, type Manifest } from './manifest';
import { checkWhenResolved, resourceOptions } from './options';
import { containsToken } from './tokens';

/** A value that may be an Output as a whole or in any of its parts. */
type DeepInput<T> = T extends string | number | boolean | null | undefined
  ? pulumi.Input<T>
  : T extends readonly (infer Item)[]
    ? pulumi.Input<readonly DeepInput<Item>[]>
    : pulumi.Input<{ readonly [Field in keyof T]: DeepInput<T[Field]> }>;

/** Props of {@link KindResource}. */
export interface KindResourceProps<K extends AnyKind> {
  /** The kind of the object. */
  readonly kind: K;
  readonly metadata: ApiObjectMetadata & { readonly name: string };
  /** @default none; a kind whose spec has required fields needs one */
  readonly spec?: DeepInput<KindSpec<K>>;
}

/**
 * An object of a kind whose spec may contain Outputs, for `ConstructResources`. Without Outputs it renders
 * the same bytes as `CustomResource`.
 *
 * Guarantees: known values are checked while the program runs, Outputs as soon as they are known, before the
 * object is registered; in a preview too, if they are known there. An object of a kind with effects, such as
 * a Cluster, is protected unless `resourceOptions` says otherwise: Pulumi does not delete it, nor replace it
 * when its provider is replaced.
 *
 * Errors: InvalidObjectError. If an Output is secret, the error names only the fields.
 */
export class KindResource<K extends AnyKind = AnyKind> extends ApiObject {
  private readonly definition: AnyKind;
  private readonly rawSpec: unknown;

  constructor(scope: Construct, id: string, props: KindResourceProps<K>) {
    const { apiVersion, kind }: AnyKind = props.kind;
    const spec: unknown = props.spec;
    const object = { apiVersion, kind, metadata: props.metadata, ...(spec === undefined ? {} : { spec }) };
    super(scope, id, object);
    this.definition = props.kind;
    this.rawSpec = spec;
    if (props.kind.effects.length > 0) resourceOptions(this, { protect: true });
    checkWhenResolved(this, (resolved) => objectProblems(props.kind, resolved as unknown as KubeObject));
  }

  /**
   * The manifest, with tokens in place of Outputs.
   * @throws InvalidObjectError if the known values do not fit the kind
   */
  // oxlint-disable-next-line typescript/no-explicit-any -- cdk8s declares it so
  override toJson(): any {
    const json = super.toJson() as Manifest;
    const object: Manifest = {
      ...(this.definition.scope === 'Cluster' ? withMetadata(json, { namespace: undefined }) : json),
      ...(json['spec'] === undefined ? {} : { spec: restoreNulls(json['spec'], this.rawSpec) }),
    };
    const open = tokenPaths(object, '');
    const problems = objectProblems(this.definition, maskTokens(object) as KubeObject).filter(
      ({ path }) => !open.some((at) => pathsOverlap(path, at)),
    );
    if (problems.length > 0) throw new InvalidObjectError(describeObject(object as unknown as KubeObject), problems);
    return object;
  }
}

function isToken(value: unknown): boolean {
  return (typeof value === 'string' || typeof value === 'number') && containsToken(value);
}

/** Replaces tokens by a value that fits no schema of a leaf, so that no rule across fields runs on them. */
function maskTokens(value: unknown): unknown {
  if (isToken(value)) return {};
  if (Array.isArray(value)) return value.map(maskTokens);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, maskTokens(field)]));
}

/** Paths of the values that are not known yet, in the notation of problems. */
function tokenPaths(value: unknown, at: string): readonly string[] {
  if (isToken(value)) return [at];
  if (Array.isArray(value)) return value.flatMap((item: unknown, i) => tokenPaths(item, `${at}[${i}]`));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, field]) => tokenPaths(field, at === '' ? key : `${at}.${key}`));
}

/** How children are rendered whose object may have tokens in it. */
export const WITH_TOKENS: RenderOptions = { isPlaceholder: containsToken };

/** Which children {@link addKindChildren} adds. */
export interface KindChildrenOptions {
  /**
   * Whether to add shared children too. Only one of the objects with the same key may.
   * @default true
   */
  readonly shared?: boolean;
}

/**
 * Adds the children of an object of a kind to a scope, as its operator would create them, for clusters
 * without the operator. Seeded fields are set at creation and left alone afterwards.
 *
 * Caveats: "left alone" is Pulumi's `ignoreChanges`, which keeps the value that the program gave last. An
 * operator reads the live value, which a program cannot. So a Deployment of 0 pods stays at 0 when its
 * autoscaler is switched on, and `replicas` takes more than one `pulumi up` to come back when it is switched
 * off: see stacks/README.md.
 *
 * @returns the children: the shared ones first, which the others may refer to
 * @throws InvalidObjectError if the object does not fit its kind; RenderError if the kind cannot render it;
 *   TypeError if the kind has effects
 */
export function addKindChildren(
  scope: Construct,
  kind: AnyKind,
  object: KubeObject,
  { shared = true }: KindChildrenOptions = {},
): readonly ApiObject[] {
  assertNoEffects(kind, describeObject(object));
  const { namespace } = object.metadata;
  const groups = shared ? sharedKeys(kind, withDefaults(kind, object)) : [];
  return [
    ...groups.flatMap(({ group, key }) => renderShared(kind, group, key, namespace, WITH_TOKENS)),
    ...renderChildren(kind, object, WITH_TOKENS),
  ].map((child) => addChild(scope, child));
}

/**
 * Rejects kinds with effects, which children cannot replace.
 *
 * @param subject what the error is about
 * @throws TypeError if the kind has effects: without an operator they would silently not happen
 */
export function assertNoEffects({ kind, effects }: AnyKind, subject: string): void {
  if (effects.length === 0) return;
  throw new TypeError(
    `${subject}: a ${kind} acts by effects, which only its operator carries out, so that its children cannot take its place. Make the object itself ` +
      'where that operator runs; a cluster is made without one by RemoteCluster',
  );
}

/** Adds a rendered child to a scope. */
export function addChild(scope: Construct, { type, manifest, seeds }: RenderedChild): ApiObject {
  const { kind, metadata } = manifest;
  const child = new ApiObject(
    scope,
    `${kind}-${metadata.name}`,
    manifest as ConstructorParameters<typeof ApiObject>[2],
  );
  resourceOptions(child, {
    // The kind declares the scope of the types that it owns; for custom resources it is known nowhere else.
    scope: type.scope,
    ...(isInternalService(manifest) ? { await: { skip: true } } : {}),
    ...(seeds.length === 0 ? {} : { ignoreChanges: seeds.map(({ path }) => propertyPath(path)) }),
  });
  return child;
}

/**
 * Whether a Service gets no address from outside the cluster. Pulumi would wait until such a Service has a
 * ready pod, and 10 seconds longer, and would fail if there are to be no pods. It waits for the workload
 * behind it anyway.
 * Source: pulumi-kubernetes, the awaiter of Services.
 */
function isInternalService({ apiVersion, kind, ...fields }: KubeObject): boolean {
  const { spec } = fields;
  return apiVersion === 'v1' && kind === 'Service' && !(isObject(spec) && spec['type'] === 'LoadBalancer');
}
