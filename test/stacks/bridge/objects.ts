import { ApiObject } from 'cdk8s';
import type { Construct } from 'constructs';

/** A plain object, with whatever fields. */
export function object(
  scope: Construct,
  id: string,
  manifest: { apiVersion?: string; kind?: string; name?: string; namespace?: string } & Record<string, unknown> = {},
): ApiObject {
  const { apiVersion = 'v1', kind = 'ConfigMap', name = id, namespace, ...fields } = manifest;
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  return new ApiObject(scope, id, { apiVersion, kind, metadata, ...fields });
}

/** A CRD as far as the bridge reads it. */
export function crd(
  scope: Construct,
  id: string,
  group: string,
  kind: string,
  extra: Record<string, unknown> = {},
): ApiObject {
  return object(scope, id, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    name: `${kind.toLowerCase()}s.${group}`,
    spec: { group, names: { kind }, scope: 'Namespaced', versions: [{ name: 'v1' }], ...extra },
  });
}
