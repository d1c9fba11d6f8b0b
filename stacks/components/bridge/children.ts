import { ApiObject } from 'cdk8s';
import type { Construct } from 'constructs';
import type { AnyKind } from '../../../constructs/core/kind';
import type { KubeObject } from '../../../constructs/core/kube-object';
import { renderChildren, renderShared, sharedKeys, withDefaults } from '../../../constructs/core/render';
import type { RenderedChild } from '../../../constructs/core/render';
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
 * @returns the children: the shared ones first, which the others may refer to
 * @throws InvalidObjectError when the object does not fit its kind; RenderError when the kind cannot render it
 */
export function addKindChildren(
  scope: Construct,
  kind: AnyKind,
  object: KubeObject,
  { shared = true }: KindChildrenOptions = {},
): readonly ApiObject[] {
  const { namespace } = object.metadata;
  const groups = shared ? sharedKeys(kind, withDefaults(kind, object)) : [];
  return [
    ...groups.flatMap(({ group, key }) => renderShared(kind, group, key, namespace)),
    ...renderChildren(kind, object),
  ].map((child) => addChild(scope, child));
}

function addChild(scope: Construct, { manifest, seeds }: RenderedChild): ApiObject {
  const { kind, metadata } = manifest;
  const child = new ApiObject(
    scope,
    `${kind}-${metadata.name}`,
    manifest as ConstructorParameters<typeof ApiObject>[2],
  );
  if (seeds.length > 0) resourceOptions(child, { ignoreChanges: seeds.map(({ path }) => propertyPath(path)) });
  return child;
}
