import type { Problem } from '../../../constructs/kube/errors';
import type { ResourceScope } from '../../../constructs/kube/resource-type';
import { groupKind, withMetadata, type Manifest, type RenderedObject } from './manifest';
import { effectiveOptions } from './options';
import { holdsToken } from './token-text';
import { builtInScope, scopesOfCrds } from './scopes';

/** Objects whose name, namespace and scope are settled, and what is wrong with those that could not be. */
export interface Identified {
  readonly objects: readonly RenderedObject[];
  readonly problems: readonly Problem[];
}

/**
 * Settles where each object lives, so that no cluster need be asked: one in a namespace says which, one of the cluster says none.
 *
 * @param namespace for namespaced objects that say none
 */
export function identify(objects: readonly RenderedObject[], namespace: string | undefined): Identified {
  const crds = scopesOfCrds(objects.map(({ manifest }) => manifest));
  const problems: Problem[] = [];
  const identified = objects.map((object) => {
    const { construct, path, manifest } = object;
    const scope = effectiveOptions(construct).scope ?? scopeOf(manifest, crds);
    const message = problemOf(manifest, scope, namespace);
    if (message !== undefined) problems.push({ path, message });
    return { ...object, manifest: inScope(manifest, scope, namespace) };
  });
  return { objects: identified, problems: [...problems, ...duplicates(identified)] };
}

function scopeOf(manifest: Manifest, crds: ReadonlyMap<string, ResourceScope>): ResourceScope | undefined {
  const known = builtInScope(manifest) ?? crds.get(groupKind(manifest));
  return known ?? (manifest.metadata.namespace === undefined ? undefined : 'Namespaced');
}

function inScope(manifest: Manifest, scope: ResourceScope | undefined, namespace: string | undefined): Manifest {
  if (scope === 'Cluster') {
    return manifest.metadata.namespace === undefined ? manifest : withMetadata(manifest, { namespace: undefined });
  }
  return manifest.metadata.namespace === undefined && namespace !== undefined && scope !== undefined
    ? withMetadata(manifest, { namespace })
    : manifest;
}

function problemOf(
  manifest: Manifest,
  scope: ResourceScope | undefined,
  namespace: string | undefined,
): string | undefined {
  const { kind, apiVersion, metadata } = manifest;
  if (holdsToken(kind) || holdsToken(apiVersion)) return 'its apiVersion or kind is an Output; both must be known';
  if (typeof metadata.name !== 'string' || metadata.name === '') {
    return `the ${kind} has no metadata.name; name it, since a name of Pulumi's making would differ from what synth shows`;
  }
  const object = `${kind} "${metadata.name}"`;
  if (scope === undefined) {
    return (
      `it is not known whether ${object} (${apiVersion}) lives in a namespace: give it one, put its CRD into the tree, or say ` +
      'resourceOptions(construct, { scope })'
    );
  }
  if (scope === 'Namespaced' && metadata.namespace === undefined && namespace === undefined) {
    return `${object} has no namespace; set metadata.namespace, or \`namespace\` of the tree`;
  }
  return undefined;
}

/** Two resources for one object would overwrite each other with every run. */
function duplicates(objects: readonly RenderedObject[]): readonly Problem[] {
  const first = new Map<string, string>();
  return objects.flatMap(({ path, manifest }) => {
    const { name, namespace } = manifest.metadata;
    const id = JSON.stringify([groupKind(manifest), namespace, name]);
    const other = first.get(id);
    if (other === undefined) {
      first.set(id, path);
      return [];
    }
    const message = `it is the same object as ${other}: ${manifest.kind} "${String(name)}"`;
    return [{ path, message }];
  });
}
