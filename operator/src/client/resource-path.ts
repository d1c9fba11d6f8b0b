import type { ResourceType } from '../../../constructs/kube/resource-type';

const prefixes = new WeakMap<ResourceType, string>();
const PLAIN_SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/** The path of a resource type's group and version: `/api/v1` or `/apis/apps/v1`. */
function prefixOf(type: ResourceType): string {
  let prefix = prefixes.get(type);
  if (prefix === undefined) {
    prefix = `${type.apiVersion.includes('/') ? '/apis' : '/api'}/${type.apiVersion}`;
    prefixes.set(type, prefix);
  }
  return prefix;
}

function segment(value: string, what: string, type: ResourceType): string {
  if (PLAIN_SEGMENT.test(value)) return value;
  if (value === '' || value === '.' || value === '..') {
    throw new TypeError(`${type.kind}: ${JSON.stringify(value)} is no ${what}; pass the object's own.`);
  }
  return encodeURIComponent(value);
}

/**
 * The REST path of all objects of a type, in one namespace or, without one, in all.
 * @throws TypeError for a namespace that cannot stand in a path.
 */
export function collectionPath(type: ResourceType, namespace?: string): string {
  if (namespace === undefined || type.scope === 'Cluster') return `${prefixOf(type)}/${type.plural}`;
  return `${prefixOf(type)}/namespaces/${segment(namespace, 'namespace', type)}/${type.plural}`;
}

/**
 * The REST path of one object or of a subresource of it.
 * @throws TypeError for a name that cannot stand in a path, or a namespaced type without a namespace.
 */
export function objectPath(
  type: ResourceType,
  ref: { readonly name: string; readonly namespace?: string },
  subresource?: string,
): string {
  if (type.scope === 'Namespaced' && ref.namespace === undefined) {
    throw new TypeError(
      `${type.kind} ${JSON.stringify(ref.name)}: the namespace is missing, and ${type.plural} live in one.`,
    );
  }
  const path = `${collectionPath(type, ref.namespace)}/${segment(ref.name, 'name', type)}`;
  return subresource === undefined ? path : `${path}/${segment(subresource, 'subresource', type)}`;
}

/** A query string with its `?`, or nothing; parameters that are undefined or false are left out. */
export function query(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  let text = '';
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === false) continue;
    text += `${text === '' ? '?' : '&'}${name}=${encodeURIComponent(value)}`;
  }
  return text;
}
