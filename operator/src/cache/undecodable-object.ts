import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';

/** One object that could not be taken into the cache; the others were. */
export class UndecodableObject extends Error {
  override readonly name = 'UndecodableObject';
  constructor(
    readonly type: ResourceType,
    /** `namespace/name`, as far as it is known. */
    readonly object: string,
    why: string,
    options?: { readonly cause?: unknown },
  ) {
    super(`${type.kind} ${object} was left out of the cache: ${why}`, options);
  }
}

/** Why an object cannot be cached, or undefined when it can. The server's word is not taken for it. */
export function whyUndecodable(object: KubeObject): string | undefined {
  const metadata: unknown = object.metadata;
  if (typeof metadata !== 'object' || metadata === null) return 'it has no metadata';
  for (const field of ['name', 'uid', 'resourceVersion']) {
    const value: unknown = (metadata as Record<string, unknown>)[field];
    if (typeof value !== 'string' || value === '') return `it has no metadata.${field}`;
  }
  return undefined;
}

/** `namespace/name`, or as much of it as there is. */
export function describeObject(object: KubeObject): string {
  const metadata = (object.metadata as Partial<KubeObject['metadata']> | null | undefined) ?? {};
  const name = typeof metadata.name === 'string' ? metadata.name : '(without a name)';
  return typeof metadata.namespace === 'string' ? `${metadata.namespace}/${name}` : name;
}
