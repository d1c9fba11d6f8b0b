import type { ApiObject } from 'cdk8s';

export { propertyPath, type PathStep } from '../../constructs/kube/errors';

/** `metadata`, with the fields that the bridge reads. */
interface ManifestMetadata {
  readonly name?: unknown;
  readonly namespace?: unknown;
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** An object as cdk8s renders it: JSON, with tokens in place of Outputs. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ManifestMetadata;
  readonly [field: string]: unknown;
}

/** An object of a tree. */
export interface RenderedObject {
  readonly construct: ApiObject;
  /** Path of the construct below the root of the tree. */
  readonly path: string;
  readonly manifest: Manifest;
}

/** The API group; empty for the core group. */
export function groupOf({ apiVersion }: Pick<Manifest, 'apiVersion'>): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}

/** A kind of a group, whatever the version: `apps/Deployment`, `/ConfigMap`. */
export function groupKind(manifest: Pick<Manifest, 'apiVersion' | 'kind'>): string {
  return `${groupOf(manifest)}/${manifest.kind}`;
}

/**
 * A manifest with some of its metadata replaced, with the keys in cdk8s's order. `undefined` removes a field.
 */
export function withMetadata(manifest: Manifest, changes: Partial<ManifestMetadata>): Manifest {
  const entries = Object.entries({ ...manifest.metadata, ...changes }).filter(([, value]) => value !== undefined);
  return { ...manifest, metadata: Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))) };
}

/**
 * Whether a problem at one path may concern a value at the other: the same value, a part of it, or an object
 * that contains it, by a rule across fields. Paths are written as in problems: `spec.containers[0].image`.
 */
export function pathsOverlap(a: string, b: string): boolean {
  const isWithin = (inner: string, outer: string): boolean =>
    inner === outer || inner.startsWith(`${outer}.`) || inner.startsWith(`${outer}[`);
  return isWithin(a, b) || isWithin(b, a);
}
