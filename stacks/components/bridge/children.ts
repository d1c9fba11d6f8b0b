import { ApiObject } from 'cdk8s';
import type { Construct } from 'constructs';
import type { AnyKind } from '../../../constructs/kind/kind';
import { isObject, type KubeObject } from '../../../constructs/kube/kube-object';
import {
  renderChildren,
  renderShared,
  sharedKeys,
  withDefaults,
  type RenderedChild,
} from '../../../constructs/kind/render';
import { describeObject } from '../../../constructs/kind/validate';
import { resourceOptions } from './options';
import { propertyPath } from './property-path';

/** Which children {@link addKindChildren} adds. */
export interface KindChildrenOptions {
  /**
   * Whether to add what several objects of the kind share as well. Only one of the objects that name the same key may.
   * @default true
   */
  readonly shared?: boolean;
}

/**
 * Adds the children of an object of a kind to a scope, as its operator would create them, for where no operator runs. Fields that the kind
 * only seeds are set at creation and left alone afterwards.
 *
 * Caveats: "left alone" is Pulumi's `ignoreChanges`, which keeps the value that the program gave last, whatever it was: an operator looks at what is live,
 * which a program cannot. So a Deployment of 0 pods stays there when its autoscaler is switched on, and `replicas` takes more than one `pulumi up` to come
 * back when it is switched off: stacks/README.md says which.
 *
 * @returns the children: the shared ones first, which the others may refer to
 * @throws InvalidObjectError when the object does not fit its kind; RenderError when the kind cannot render it; TypeError when the kind acts by effects
 */
export function addKindChildren(
  scope: Construct,
  kind: AnyKind,
  object: KubeObject,
  { shared = true }: KindChildrenOptions = {},
): readonly ApiObject[] {
  refuseEffects(kind, describeObject(object));
  const { namespace } = object.metadata;
  const groups = shared ? sharedKeys(kind, withDefaults(kind, object)) : [];
  return [
    ...groups.flatMap(({ group, key }) => renderShared(kind, group, key, namespace)),
    ...renderChildren(kind, object),
  ].map((child) => addChild(scope, child));
}

/**
 * Refuses what no children stand for.
 *
 * @param subject what the error is about
 * @throws TypeError when the kind acts by effects: nothing would be made of them, and nothing would say so
 */
export function refuseEffects({ kind, effects }: AnyKind, subject: string): void {
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
    // The kind says it of the types that it owns; of other than Kubernetes' own, nobody else would know.
    scope: type.scope,
    ...(isInternalService(manifest) ? { await: { skip: true } } : {}),
    ...(seeds.length === 0 ? {} : { ignoreChanges: seeds.map(({ path }) => propertyPath(path)) }),
  });
  return child;
}

/**
 * A Service that gets no address from outside the cluster. Pulumi waits until it has a ready pod and 10 seconds longer, and fails where there are to be
 * no pods; the workload behind it is awaited by itself.
 * Source: pulumi-kubernetes, the awaiter of Services.
 */
function isInternalService({ apiVersion, kind, ...fields }: KubeObject): boolean {
  const { spec } = fields;
  return apiVersion === 'v1' && kind === 'Service' && !(isObject(spec) && spec['type'] === 'LoadBalancer');
}
