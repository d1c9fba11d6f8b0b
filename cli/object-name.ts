import type { KubeObject } from '../constructs/kube/kube-object';

/** An object in messages: `HelloApp kindred-samples/web`. */
export function objectName({ kind, metadata }: Pick<KubeObject, 'kind' | 'metadata'>): string {
  const { name, namespace } = metadata;
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}
